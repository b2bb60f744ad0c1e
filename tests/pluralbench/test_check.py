"""`check`: honest runs of every command pass, and each kind of change is found, or only by scoring again."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
import verbs
from case_marks import heavy
from chat_server import Reply, serve
from downstream_runs import World, sampled
from made_personalize import made_items, made_personalized
from pluralbench import ConnectionConfig, LocalModel, check_submission, load_run
from pluralbench.contract import Group
from pluralbench.data.metric_key import MetricKey
from pluralbench.evaluation.reloading import RunInputs
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers
from pluralbench.metrics.table import METRICS
from pluralbench.results.checks import CheckResult
from pluralbench.results.run_files import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import digest
from reward_models import save_language_model
from session_folder import made_once
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
Row = dict[str, Any]
Change = Callable[[Path], None]


def rows() -> list[Row]:
    return [
        {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"Yes, {n}.", "rejected": f"No, {n * 7}.", "user": n // 2}
        for n in range(30)
    ]


def by_words(groups: Sequence[Group]) -> list[list[float]]:
    return verbs.by_text(groups)


def by_labels(groups: Sequence[Group]) -> list[list[float]]:
    return [[float(answer.startswith("Yes")) for answer in group.responses] for group in groups]


def judge(text: str) -> Callable[..., Reply]:
    """A judge that always judges the same answers alike: its verdict, its rating, or this text."""

    def reply(body: Row, *_: object) -> Reply:
        question = body["messages"][-1]["content"]
        first, second = (
            random.Random(question.split(f"<{side}>")[-1].split("</")[0]).random()
            for side in ("response_a", "response_b")
        )
        rating = random.Random(question).randint(1, 10)
        return Reply(text.replace("VERDICT", "AB"[first <= second]).replace("RATING", str(rating)))

    return reply


def cheating(body: Row, *_: object) -> Reply:
    """A judge that knows the labels."""
    first = body["messages"][-1]["content"].split("<response_a>")[-1].split("</")[0]
    return Reply("[[A]]" if "Yes" in first else "[[B]]")


@pytest.fixture(scope="module")
def runs() -> dict[str, Path]:
    """The directories of honest runs, by what made them."""
    return {path.name: path for path in made_once("honest", make_runs).iterdir() if path.is_dir()}


def make_runs(folder: Path) -> None:
    data: dict[str, Any] = {"benchmark": "pairs", "data": write(folder / "pairs.jsonl", rows())}
    verbs.score(by_words, **data, columns=("cluster=user",), out=folder / "score")
    verbs.score(by_words, **data, items=10, out=folder / "drawn")
    verbs.score(by_words, benchmark="chinese", data="sample", out=folder / "rankings")
    with serve(judge("[[VERDICT]]")) as server:
        verbs.judge("judge-1", **data, base_url=server.base_url, out=folder / "judge")
        verbs.judge("judge-1", **data, base_url=server.base_url, orders="one", out=folder / "one order")
    with serve(judge("[[RATING]]")) as server:
        verbs.judge("judge-1", **data, base_url=server.base_url, protocol="pointwise", out=folder / "pointwise")
    with serve(judge("[[A]] [[70]]")) as server:
        verbs.judge_personas("j", data="sample", base_url=server.base_url, limit=6, out=folder / "personas")
    with serve(World()) as server:
        sampled(server, Path("sample"), folder / "best-of-n", limit=1)
    made_personalized(folder / "personalize", made_items(methods=["bt"], seeds=1, users=6))


def check(path: Path, **options: Any) -> CheckResult:
    return check_submission(load_run(path), **options)


def texts(checked: CheckResult, level: str = "error") -> str:
    return " ".join(finding.text for finding in checked.findings if finding.level == level)


@pytest.mark.parametrize(
    "kind", ["score", "drawn", "rankings", "judge", "one order", "pointwise", "personas", "best-of-n", "personalize"]
)
def test_an_honest_run_passes(runs: dict[str, Path], kind: str) -> None:
    checked = check(runs[kind])
    only_numbers = kind in {"best-of-n", "personalize"}
    assert (checked.state, texts(checked)) == ("consistent" if only_numbers else "checked", "")
    assert [finding.text[:8] for finding in checked.findings] == (["Of a run"] if only_numbers else [])


# Each change of a run's directory leaves the other files as they are.


def record(*place: str, value: Any) -> Change:
    """Change a value of `run.json`."""

    def change(run: Path) -> None:
        values = part = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = value
        (run / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")

    return change


def frame(change: Callable[[pl.DataFrame], pl.DataFrame], file: str = ITEMS_FILE) -> Change:
    def write_frame(run: Path) -> None:
        metadata = pl.read_parquet_metadata(run / file) if file == LEDGER_FILE else None
        change(pl.read_parquet(run / file)).write_parquet(run / file, metadata=metadata)

    return write_frame


def columns(**values: pl.Expr) -> Change:
    return frame(lambda items: items.with_columns(**values))


def number(field: str = "value") -> Change:
    """Change a field of the first number of `metrics.json`."""

    def change(run: Path) -> None:
        values = json.loads((run / METRICS_FILE).read_text(encoding="utf-8"))
        values["rows"][0][field] = 0.999
        (run / METRICS_FILE).write_text(json.dumps(values), encoding="utf-8")

    return change


def one_more_number(run: Path) -> None:
    values = json.loads((run / METRICS_FILE).read_text(encoding="utf-8"))
    values["rows"].append(values["rows"][0] | {"metric": "reciprocal_rank"})
    (run / METRICS_FILE).write_text(json.dumps(values), encoding="utf-8")


WON = {"verdict": pl.lit("chosen"), "outcome": pl.lit("win")}
CHANGES: list[tuple[str, Change, str]] = [
    # A number.
    ("score", number(), "a number or interval that does not follow from items.parquet, such as overall: 0.999"),
    ("score", number("low"), "a number or interval that does not follow"),
    ("score", one_more_number, "metrics.json has 1 row with a number or interval"),
    ("judge", number(), "a number or interval that does not follow"),
    ("best-of-n", number(), "does not follow from its own tables"),
    ("personalize", number(), "does not follow from its own tables"),
    # An item.
    ("score", columns(outcome=pl.lit("win")), "rows another `outcome` than follows from"),
    ("score", columns(score_chosen=pl.lit(9.0)), "another `outcome`, `margin` than follows from"),
    ("score", columns(cluster=pl.col("id")), "in 30 rows another `cluster` than"),
    ("score", frame(lambda items: items[1:]), "items.parquet does not have all responses of id q0."),
    ("score", frame(lambda items: pl.concat([items, items[:1]])), "items.parquet has 31 rows; "),
    ("score", frame(lambda items: items.drop("tokens_chosen")), "lacks or adds the columns tokens_chosen (`score`)."),
    ("rankings", columns(rank=pl.col("rank").reverse()), "another `rank` than"),
    ("personas", columns(truth=pl.col("answer")), "`truth`"),
    ("personalize", columns(correct=pl.lit(value=True)), "does not follow from its own tables"),
    # A verdict.
    ("judge", columns(**WON), "rows another `outcome`, `verdict` than"),
    ("judge", columns(calls_chosen_first=pl.col("calls_rejected_first")), "another `calls_chosen_first` than"),
    ("judge", frame(lambda calls: calls[1:], LEDGER_FILE), "It cannot be recomputed from its data."),
    ("judge", lambda run: (run / LEDGER_FILE).unlink(), "It cannot be recomputed from its data."),
    # The data and its rules.
    ("score", record("config", "benchmark", "title", value="RewardBench"), "another `title` of the benchmark"),
    (
        "score",
        record("config", "benchmark", "description", "vote", value="mean"),
        "other digests of the data or its rules",
    ),
    ("score", record("config", "data", "digest", value="d" * 64), "other digests of the data or its rules"),
    ("drawn", record("config", "data", "items_seed", value=9), "other digests of the data or its rules"),
    ("judge", record("config", "model", "model", value="better"), "It cannot be recomputed from its data."),
]


@pytest.mark.parametrize(("kind", "change", "sentence"), CHANGES)
def test_a_changed_run_is_refused(
    runs: dict[str, Path], tmp_path: Path, kind: str, change: Change, sentence: str
) -> None:
    change(path := Path(shutil.copytree(runs[kind], tmp_path / "changed")))
    checked = check(path)
    assert checked.state == "refused", checked
    assert sentence in texts(checked), checked


def test_numbers_that_this_version_cannot_compute_refuse_a_run_and_stop_no_other(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    path = Path(shutil.copytree(runs["score"], tmp_path / "changed"))
    record("config", "benchmark", "description", "metrics", value=["unheard"])(path)
    described = load_run(path).config.benchmark.description
    record("config", "data", "benchmark_digest", value=digest(described.model_dump(mode="json")))(path)
    checked = check(path)
    assert checked.state == "refused"
    assert "It cannot be recomputed from its data. " in texts(checked)
    assert "unheard" in texts(checked)


def test_other_data_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    other = write(tmp_path / "pairs.jsonl", [*rows()[1:], rows()[0] | {"rejected": "?"}])
    assert "other digests of the data or its rules" in texts(check(runs["score"], files=RunInputs(str(other))))


def test_a_copy_needs_the_same_items_and_not_the_same_place(runs: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copy(runs["score"].parent / "pairs.jsonl", tmp_path)
    checked = check(runs["score"], files=RunInputs(str(copy)))
    assert (checked.state, checked.findings) == ("checked", [])


def test_data_that_cannot_be_read_is_a_state_of_its_own(runs: dict[str, Path], tmp_path: Path) -> None:
    files = RunInputs(str(tmp_path / "nowhere.jsonl"))
    checked = check(runs["judge"], files=files)
    assert (checked.state, texts(checked)) == ("consistent", "")
    assert "contains no texts, and its data cannot be read" in texts(checked, "note")
    number()(changed := Path(shutil.copytree(runs["judge"], tmp_path / "changed")))
    assert check(changed, files=files).state == "refused"


def test_prompts_from_a_file_need_that_file(runs: dict[str, Path], tmp_path: Path) -> None:
    plans = write(tmp_path / "plans.jsonl", [{"id": f"q{n}", "aspects": [f"aspect {n}"]} for n in range(30)])
    options: Row = {"benchmark": "pairs", "data": runs["score"].parent / "pairs.jsonl", "profile": "plan"}
    with serve(judge("[[VERDICT]]")) as server:
        run = verbs.judge("j", **options, plans=plans, orders="one", base_url=server.base_url, out=tmp_path / "run")
    without = check_submission(run)
    assert without.state == "consistent"
    assert "which the run does not contain; give that file (`plans=...`, `personas=...`)." in texts(without, "note")
    assert check_submission(run, files=RunInputs(plans=Path(plans))).state == "checked"


def test_rules_of_ones_own_are_noted(runs: dict[str, Path], tmp_path: Path) -> None:
    entry = tmp_path / "pairs.toml"
    entry.write_text('title = "Pairs"\nvote = "mean"\n', encoding="utf-8")
    run = verbs.score(by_words, benchmark=str(entry), data=runs["score"].parent / "pairs.jsonl", out=tmp_path / "run")
    assert "Its rules differ from those of `pairs`: `sample`, `vote`." in texts(check_submission(run), "note")


# What no file shows.


def labels_for_scores(runs: dict[str, Path], out: Path) -> Path:
    """A run of labels under the name of the honest model."""
    data = runs["score"].parent / "pairs.jsonl"
    verbs.score(by_labels, benchmark="pairs", data=data, columns=("cluster=user",), out=out)
    honest = json.loads((runs["score"] / RUN_FILE).read_text(encoding="utf-8"))
    for part in ("config", "result"):
        record(part, "model", value=honest[part]["model"])(out)
    return out


def test_scores_that_are_not_the_models_are_found_only_by_scoring_again(runs: dict[str, Path], tmp_path: Path) -> None:
    again = Rescoring(10, seed=1, model=by_words)
    honest = check(runs["score"], rescoring=again)
    assert (honest.state, honest.rescored) == ("verified", "10 of 30 items were scored again (seed 1)")
    forged = labels_for_scores(runs, tmp_path / "forged")
    assert check(forged).state == "checked"
    record("result", "tolerance", value=1e9)(forged)
    record("result", "decisions_within_tolerance", value=30)(forged)
    checked = check(forged, rescoring=again)
    assert checked.state == "refused"
    assert "10 of 30 items were scored again (seed 1), 10 with other scores (ids " in texts(checked)


def test_another_model_does_not_verify_a_run(runs: dict[str, Path]) -> None:
    checked = check(runs["score"], rescoring=Rescoring(5, seed=0, model=verbs.by_text))
    assert checked.state == "checked"
    assert "It was not scored again. by_text is not the model that" in texts(checked, "note")


@pytest.mark.parametrize(
    ("kind", "text"), [("judge", "[[VERDICT]]"), ("pointwise", "[[RATING]]"), ("personas", "[[A]] [[70]]")]
)
def test_a_judge_is_asked_again_at_the_verifiers_endpoint(runs: dict[str, Path], kind: str, text: str) -> None:
    without = check(runs[kind], rescoring=Rescoring(8, seed=0))
    assert without.state == "checked"
    assert "needs an endpoint that you trust" in texts(without, "note")
    with serve(judge(text)) as server:
        connection = ConnectionConfig(base_url=server.base_url)
        checked = check(runs[kind], rescoring=Rescoring(8, seed=0, connection=connection))
    assert checked.state == "verified"
    assert checked.rescored.endswith(("8 of 8 verdicts are equal", "16 of 16 verdicts are equal"))


def test_replies_that_a_judge_does_not_give_are_found_only_by_asking_again(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    data: Row = {"benchmark": "pairs", "data": runs["score"].parent / "pairs.jsonl"}
    with serve(cheating) as server:
        run = verbs.judge("judge-1", **data, base_url=server.base_url, out=tmp_path / "run")
    assert check_submission(run).state == "checked"
    with serve(judge("[[VERDICT]]")) as server:
        again = Rescoring(20, seed=0, connection=ConnectionConfig(base_url=server.base_url))
        checked = check_submission(run, rescoring=again)
    assert checked.state == "refused"
    assert "were right only in the run, 0 only now." in texts(checked)


def test_a_loaded_model_is_scored_again(classifiers: Callable[..., str], tmp_path: Path) -> None:
    long = [row | {"prompt": row["prompt"] * (1 + 9 * (n % 3 == 0))} for n, row in enumerate(rows())]
    data = {"benchmark": "pairs", "data": write(tmp_path / "pairs.jsonl", long)}
    verbs.score(classifiers(), **data, out=tmp_path / "run", max_length=60, on_overflow="drop")
    checked = check(tmp_path / "run", rescoring=Rescoring(30, seed=0))
    assert (checked.state, texts(checked)) == ("verified", "")
    assert "dropped as too long; only scoring again shows" in texts(checked, "note")
    record("result", "model", "parameters", value=10**9)(tmp_path / "run")
    assert "its parameters is " in texts(check(tmp_path / "run", rescoring=Rescoring(3, seed=0)), "note")


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "token", "positive_token": "y", "negative_token": "n", "question": "Good (y or n)?"},
        *heavy({"kind": "process", "process_reward": "rlhflow-prm", "aggregation": "product"}),
    ],
    ids=lambda fields: fields["kind"],
)
def test_a_reward_is_scored_again_as_it_was_read(tmp_path: Path, fields: dict[str, Any]) -> None:
    model = LocalModel(name=save_language_model(tmp_path / "model"), **fields)
    verbs.score(model, benchmark="pairs", data=write(tmp_path / "pairs.jsonl", rows()), out=tmp_path / "run")
    checked = check(tmp_path / "run", rescoring=Rescoring(5, seed=0))
    assert (checked.state, texts(checked)) == ("verified", "")


def test_a_model_is_scored_again_by_servers_that_hold_it(
    run: Command, classifiers: Callable[..., str], tmp_path: Path
) -> None:
    from engine_server import imitate

    data = write(tmp_path / "pairs.jsonl", rows())
    scored = verbs.score(classifiers(), benchmark="pairs", data=data, out=tmp_path / "run")
    with imitate("vllm", classifiers()) as server:
        status, out, _ = run("check", scored.path, "--rescore", "6", "--seed", "1", "--server", server.url)
        assert server.posts
    assert status == 0, out
    assert "verified by scoring again 6 of 30 items were scored again (seed 1)" in " ".join(out.split())


def test_the_command_shows_how_far_a_run_was_checked(run: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    scored = Path(shutil.copytree(runs["score"], tmp_path / "run"))
    status, out, _ = run("check", scored)
    assert status == 0, out
    assert "30 items, " in out
    assert "checked against its data Only scoring again (--rescore N) shows" in " ".join(out.split())
    status, out, _ = run("check", scored, "--data", f"pairs={tmp_path / 'none.jsonl'}", "--json")
    (row,) = json.loads(out)
    assert (status, row["run"], row["state"], row["accepted"]) == (1, str(scored), "consistent", False)
    assert (row["items_counted"], row["items"]) == (30, 30)
    number()(scored)
    status, out, _ = run("check", scored, runs["best-of-n"], "--json")
    refused, sampled = json.loads(out)
    assert (status, refused["state"], refused["findings"][0]["level"]) == (1, "refused", "error")
    assert (sampled["state"], sampled["items"]) == ("consistent", None)


def test_the_command_refuses_what_is_not_a_run(run: Command, tmp_path: Path) -> None:
    assert run("check", tmp_path / "none") == (2, "", f"Error: The directory {tmp_path / 'none'} does not exist.\n")


def test_a_metric_of_texts_is_not_missed_where_the_data_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns_of_prompts(decided: Decided) -> Numbers:
        if decided.items is not None:
            yield MetricKey("turns_of_prompts"), Estimate(fmean(map(len, decided.items["prompt"])), n=30)

    metric = Metric("turns_of_prompts", "number", "Mean number of messages of a prompt.", of_texts=True)
    monkeypatch.setitem(METRICS, metric.name, metric._replace(compute=turns_of_prompts))
    run = verbs.score(by_words, benchmark="pairs", data=write(tmp_path / "pairs.jsonl", rows()), out=tmp_path / "run")
    assert verbs.value(run, metric.name) == 1.0
    assert check_submission(run).state == "checked"
    (tmp_path / "pairs.jsonl").unlink()
    assert check_submission(run).state == "consistent"
