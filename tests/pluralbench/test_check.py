"""`check`: runs as they were made are checked and verified; forged ones, whose files are in step, are seen."""

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_runs
import polars as pl
import pytest
import verbs
from chat_server import Reply, serve
from forged_runs import by_row, change_config, change_record, copied, named, rewritten, with_ledger, with_scores
from made_personalize import made_items, made_personalized
from made_runs import decision, run_of
from pluralbench import ConnectionConfig, load_run
from pluralbench.contract import Group
from pluralbench.data.benchmarks import Benchmark, known_benchmarks
from pluralbench.evaluation.loading import benchmark_record
from pluralbench.leaderboard.checks import check_submission
from pluralbench.leaderboard.findings import CheckResult
from pluralbench.leaderboard.reproduction import RunInputs
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.leaderboard.unusual import check_margins
from pluralbench.reports.sheets import sheets_of
from pluralbench.results import Run
from pluralbench.results.evaluations import ScoreResult
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE
from pluralbench_runs import digest
from written_tables import write

Command = Callable[..., tuple[int, str, str]]

Row = dict[str, Any]
RECORDED = Path(__file__).parents[3] / "shared" / "data" / "suite" / "recorded"
ALWAYS = {"model", "software", "sample", "limit"}
"""What is said of every run here: of a function, of a checkout with changes, of a sample."""


def rows() -> list[Row]:
    return [
        {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"Yes, {n}.", "rejected": f"No, {n * 7}.", "user": n // 2}
        for n in range(30)
    ]


def by_words(groups: Sequence[Group]) -> list[list[float]]:
    return verbs.by_text(groups)


def reply(text: str) -> Callable[..., Reply]:
    """A judge that always says the same of the same answers, in either order, or this text where it has no mark."""

    def said(body: Row, *_: object) -> Reply:
        asked = body["messages"][-1]["content"]
        drawn = {
            side: random.Random(asked.split(f"<{side}>")[-1].split("</")[0]) for side in ("response_a", "response_b")
        }
        of = {side: one.random() for side, one in drawn.items()}
        verdict = "A" if of["response_a"] > of["response_b"] else "B"
        rating = random.Random(asked).randint(1, 10)
        return Reply(f"Because of {of}.\n{text.replace('VERDICT', verdict).replace('RATING', str(rating))}")

    return said


@dataclass(frozen=True)
class Made:
    """Honest runs, by what made them."""

    folder: Path
    runs: dict[str, Run]

    def copy(self, kind: str, out: Path) -> Run:
        return copied(self.runs[kind], out / "forged")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("honest")
    data = write(folder / "pairs.jsonl", rows())
    runs = {"score": verbs.score(by_words, benchmark="pairs", data=data, columns=("cluster=user",), out=folder / "s")}
    runs["rankings"] = verbs.score(by_words, benchmark="chinese", data="sample", out=folder / "r")
    with serve(reply("[[VERDICT]]")) as server:
        asked = {"benchmark": "pairs", "data": data, "base_url": server.base_url}
        runs["judge"] = verbs.judge("judge-1", **asked, out=folder / "j")
        runs["one order"] = verbs.judge("judge-1", **asked, orders="one", out=folder / "o")
    with serve(reply("[[RATING]]")) as server:
        runs["pointwise"] = verbs.judge(
            "judge-1", **asked | {"base_url": server.base_url}, protocol="pointwise", out=folder / "p"
        )
    with serve(reply("[[A]] [[70]]")) as server:
        runs["personas"] = verbs.judge_personas("j", data="sample", base_url=server.base_url, limit=6, out=folder / "q")
    return Made(folder, runs)


def said(checked: CheckResult, level: str = "refused") -> str:
    return " ".join(found.text for found in checked.findings if found.level == level)


def about(checked: CheckResult) -> set[str]:
    return {found.about for found in checked.findings} - ALWAYS


@pytest.mark.parametrize(
    ("kind", "remarks", "sentence"),
    [
        ("score", set(), "The model is a Python function, which others cannot run."),
        ("rankings", set(), "The model is a Python function, which others cannot run."),
        ("judge", set(), ""),
        ("one order", {"settings"}, "orders is one; the default is both."),
        ("pointwise", {"settings"}, "protocol is pointwise; the default is pairwise."),
        ("personas", {"settings", "position"}, "It uses at most 6 items of each task."),
        ("personas", {"settings", "position"}, "The judge chose the response shown first in 100% of its valid"),
    ],
)
def test_an_honest_run_is_checked_and_has_no_remark_but_what_was_chosen(
    made: Made, kind: str, remarks: set[str], sentence: str
) -> None:
    checked = check_submission(made.runs[kind])
    assert (checked.state, said(checked)) == ("checked", "")
    assert about(checked) <= remarks
    assert sentence in said(checked, "unusual")


# Forgeries: each keeps outcomes, metrics, references and counts in step with what it changes.


def exchanged(run: Run) -> Run:
    return by_row(run, lambda row: with_scores(row, *sorted((row["score_chosen"], row["score_rejected"]))[::-1]))


def labeled(run: Run) -> Run:
    return by_row(run, lambda row: with_scores(row, 1.0, 0.0))


def called_too_long(run: Run) -> Run:
    gone = {"outcome": "dropped", "margin": None, "score_chosen": None, "score_rejected": None, "reason": "too long"}
    run = by_row(run, lambda row: row | gone if row["outcome"] == "loss" else row)
    return change_record(run, items_dropped=run.items.filter(outcome="dropped").height)


def with_metrics(run: Run, metrics: pl.DataFrame) -> Run:
    values = json.loads((run.path / METRICS_FILE).read_text(encoding="utf-8"))
    (run.path / METRICS_FILE).write_text(json.dumps(values | {"rows": metrics.to_dicts()}), encoding="utf-8")
    return load_run(run.path)


def ranked_by_score(run: Run) -> Run:
    ranks = pl.col("score").rank("ordinal", descending=True).over("config", "id").cast(pl.Int64)
    return rewritten(run, run.items.with_columns(rank=ranks))


CHOSEN = {"verdict_chosen_first": "A", "verdict_rejected_first": "B", "verdict": "chosen", "outcome": "win"}


def all_by_one_call(run: Run) -> Run:
    """Every verdict is that of a call in which the judge was right."""
    calls = {}
    for row in run.items.iter_rows(named=True):
        for side, right in (("chosen", "A"), ("rejected", "B")):
            if row[f"verdict_{side}_first"] == right:
                calls[side] = row[f"calls_{side}_first"]

    def change(row: Row) -> Row:
        own = {f"calls_{side}_first": calls[side] for side in calls}
        return row | own | CHOSEN

    return by_row(run, change)


def without_calls(run: Run) -> Run:
    names = [name for name in run.items.columns if name.startswith(("calls", "verdict_"))]
    return rewritten(run, run.items.drop(names).with_columns(outcome=pl.lit("win"), verdict=pl.lit("chosen")))


def truth_as_said(run: Run) -> Run:
    def change(row: Row) -> Row:
        said = {"truth": row["answer"], "chosen": row["answer"], "rejected": {"A": "B", "B": "A"}[row["answer"]]}
        return row | said | {"outcome": "win"}

    return by_row(run, change)


def as_scores(run: Run) -> Run:
    """A judge's ratings under the name of a reward model."""
    (run.path / LEDGER_FILE).unlink()
    run = rewritten(run, run.items.drop("calls_chosen", "calls_rejected"))
    model = run.result.model.model_copy(update={"kind": "classifier", "provider": None})
    config = made_runs.config_of(run.config.benchmark.description, run.config.benchmark.name, {}, model=run.name)
    of = {"benchmark": run.config.benchmark, "data": run.config.data, "prompt": run.config.prompt, "model": model}
    values = json.loads((run.path / RUN_FILE).read_text(encoding="utf-8"))
    values |= {"verb": "score", "config": config.model_copy(update=of).model_dump(mode="json")}
    values["result"] = ScoreResult(model=model).model_dump(mode="json")
    (run.path / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")
    return load_run(run.path)


def replies_for_wins(run: Run) -> Run:
    """Another reply under the key of each call that was no win."""
    ledger = pl.read_parquet(run.path / LEDGER_FILE)
    right = {
        key: letter
        for row in run.items.iter_rows(named=True)
        for side, letter in (("chosen", "A"), ("rejected", "B"))
        for key in row[f"calls_{side}_first"] or ()
    }
    texts = [f"[[{right[key]}]]" for key in ledger["key"]]
    with_ledger(run, ledger.with_columns(text=pl.Series(texts)))
    return by_row(run, lambda row: row | CHOSEN | {"reason": None})


FORGERIES: list[tuple[str, Callable[[Run], Run], str, str]] = [
    (
        "score",
        lambda run: change_config(run, data={"digest": "d" * 64}),
        "refused",
        "run.json records another `digest` of the data",
    ),
    ("score", called_too_long, "consistent", "by_words, of the kind function, which cannot be loaded here."),
    ("score", exchanged, "checked", "Of its 30 decisions, 30 are right and none is wrong."),
    ("score", labeled, "checked", "Its margins have at most two distinct sizes, as labels do."),
    ("rankings", ranked_by_score, "refused", "another `rank` than"),
    ("judge", all_by_one_call, "refused", "another `calls_chosen_first` than"),
    (
        "judge",
        without_calls,
        "refused",
        "items.parquet lacks the columns calls_chosen_first, calls_rejected_first",
    ),
    ("judge", lambda run: named(run, "better-judge"), "refused", "ledger.parquet lacks calls that"),
    ("judge", replies_for_wins, "checked", "Of its 30 decisions, 30 are right and none is wrong."),
    ("personas", truth_as_said, "refused", "another `chosen` than follows from sample"),
    (
        "pointwise",
        as_scores,
        "checked",
        "It does not record how judge-1 computed its scores: neither in this process nor on servers.",
    ),
]


@pytest.mark.parametrize(("kind", "forge", "state", "sentence"), FORGERIES)
def test_a_forged_run_is_refused_set_apart_or_remarked_upon(
    made: Made, tmp_path: Path, kind: str, forge: Callable[[Run], Run], state: str, sentence: str
) -> None:
    checked = check_submission(forge(made.copy(kind, tmp_path)))
    assert checked.state == state, checked
    assert sentence in said(checked, "refused" if state == "refused" else "unusual"), checked


def described(run: Run, **changes: Any) -> Run:
    """The run with another description of its benchmark, and with what follows from it in its config."""
    description = Benchmark.model_validate(run.config.benchmark.description.model_dump() | changes)
    of = run.config.data
    record = benchmark_record(run.config.benchmark.name, description, of.location, of.revision)
    change_config(run, benchmark=record.model_dump(mode="json"))
    return change_config(run, data={"benchmark_digest": digest(description.model_dump(mode="json"))})


def with_other_model(run: Run) -> Run:
    with_ledger(run, pl.read_parquet(run.path / LEDGER_FILE).with_columns(model=pl.lit("gpt-other")))
    return run


def in_shards(run: Run) -> Run:
    shard = {"shard": "1/1", "items": 7, "provenance": run.provenance.model_dump(mode="json")}
    return change_record(run, shards=[shard])


def lacking(run: Run) -> Run:
    return rewritten(run, run.items[1:])


CHINESE = known_benchmarks()["chinese"].columns
ANOTHER, DATA = "another `{}` than follows from its calls", "records another `{}` of the data"
RECORDS: list[tuple[str, Callable[..., Run], Row, str]] = [
    ("score", change_config, {"benchmark": {"title": "Pairs"}}, "records the title Pairs, but its data gives Pairs (p"),
    ("score", change_config, {"benchmark": {"rule": "luck"}}, "records the rule luck, but"),
    ("score", change_config, {"data": {"license": "MIT"}}, DATA.format("license")),
    ("score", change_config, {"data": {"ignored_columns": ["x"]}}, DATA.format("ignored_columns")),
    ("score", change_config, {"data": {"answered": ["q1"]}}, DATA.format("answered")),
    ("score", change_config, {"model": {"parameters": 7}}, "two different values of the parameters: 7 and None"),
    ("score", change_config, {"model": {"commit": "c"}}, "two different values of the commit: c and None"),
    ("score", change_config, {"prompt": {"profile": None}}, "does not record the user context"),
    ("score", change_config, {"prompt": {"profile": "raw"}}, "Its data does not have what its prompts show. The item"),
    ("judge", change_config, {"prompt": {"profile": "raw"}}, "Its data does not have what its prompts show. The item"),
    ("judge", change_config, {"judging": {"oracle": "titles"}}, "does not have what its prompts show. The item q0 has"),
    ("rankings", lacking, {}, "does not have the responses of 1 item once each"),
    ("score", change_config, {"prompt": {"wordings_digest": "d"}}, "Its prompts differ from those of this version"),
    ("score", change_record, {"items_dropped": 1}, "another `items_dropped` than follows from its scores"),
    ("score", change_record, {"tolerance": 9.0}, "another `decisions_within_tolerance` than"),
    ("judge", change_record, {"model": {"kind": "classifier"}}, ANOTHER.format("model")),
    ("judge", change_record, {"prompt_tokens": 1}, ANOTHER.format("prompt_tokens")),
    ("judge", change_record, {"readings": {"strict": 1}}, ANOTHER.format("readings")),
    ("judge", change_record, {"invalid_reasons": {"x": 1}}, ANOTHER.format("invalid_reasons")),
    ("judge", change_record, {"cost": {"dollars": 0.01}}, ANOTHER.format("cost")),
    ("judge", change_config, {"judging": {"temperature": 1.0}}, "two different values of the temperature: 1.0 and 0.0"),
    ("judge", with_other_model, {}, "Its replies are of gpt-other; the model asked is judge-1."),
    ("score", in_shards, {}, "records 7 items in shards, but items.parquet has 30."),
    ("personas", change_record, {"ties_excluded": {"prism": 0}}, ANOTHER.format("ties_excluded")),
    ("personas", change_record, {"without_persona": {"items": 1}}, ANOTHER.format("without_persona")),
    ("score", described, {"title": "RewardBench"}, "Its rules differ from those of `pairs`: title."),
    ("score", described, {"data": "org/mine"}, "Its rules differ from those of `pairs`: data."),
    ("score", described, {"sample": "chinese"}, "Its rules differ from those of `pairs`: sample."),
    ("rankings", described, {"columns": CHINESE.model_dump() | {"subset": None}}, "It reads other columns than the"),
]


@pytest.mark.parametrize(("kind", "change", "parts", "sentence"), RECORDS)
def test_a_record_that_data_and_calls_do_not_give_is_seen(
    made: Made, tmp_path: Path, kind: str, change: Callable[..., Run], parts: Row, sentence: str
) -> None:
    checked = check_submission(change(made.copy(kind, tmp_path), **parts))
    assert sentence in " ".join(found.text for found in checked.findings), checked


def test_a_description_with_unknown_legacy_rules_ends_no_report(made: Made, tmp_path: Path) -> None:
    run = described(made.copy("score", tmp_path), legacy="nowhere", overall="configs")
    assert [sheet.qualifiers[-1] for sheet in sheets_of([made.runs["score"], run])] == ["its own rules"] * 2


LOST = pl.when(pl.col("outcome") == "loss")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda items: items.drop("score_chosen", "score_rejected"), "lacks the columns score_chosen, score_rejected"),
        (
            lambda items: items.with_columns(
                outcome=LOST.then(pl.lit("equal")).otherwise("outcome"), margin=LOST.then(None).otherwise("margin")
            ),
            "has in",
        ),
        (lambda items: items.filter(outcome="win"), "lacks"),
        (lambda items: items.filter(outcome="win")[:1], "lacks 29 items (ids"),
        (lambda items: items.with_columns(cluster=pl.col("id")), "has in 30 rows another `cluster` than"),
    ],
)
def test_items_that_the_data_does_not_give_are_refused(
    made: Made, tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], sentence: str
) -> None:
    run = made.copy("score", tmp_path)
    checked = check_submission(rewritten(run, change(run.items)))
    assert checked.state == "refused"
    assert f"items.parquet {sentence}" in said(checked)


@pytest.mark.parametrize(
    "change",
    [
        {"value": pl.when(pl.col("metric").str.contains("longer|coin")).then(0.1).otherwise("value")},
        {"low": pl.col("value") - 0.001, "high": pl.col("value") + 0.001},
        {"low": pl.col("high"), "high": pl.col("low")},
    ],
    ids=["references", "narrow", "turned round"],
)
def test_metrics_that_the_items_do_not_give_are_refused(made: Made, tmp_path: Path, change: dict[str, pl.Expr]) -> None:
    run = made.copy("score", tmp_path)
    checked = check_submission(with_metrics(run, run.metrics.with_columns(**change)))
    assert checked.state == "refused"
    assert "numbers or intervals that do not follow from items.parquet, such as" in said(checked)


@pytest.mark.parametrize("forge", [exchanged, labeled])
def test_scores_that_are_not_the_models_are_seen_by_scoring_again(
    made: Made, tmp_path: Path, forge: Callable[[Run], Run]
) -> None:
    how = Rescoring(10, seed=1, model=by_words)
    honest = check_submission(made.runs["score"], rescoring=how)
    assert honest.state == "verified"
    assert honest.rescored == "10 of 30 items were scored again (seed 1)"
    checked = check_submission(forge(made.copy("score", tmp_path)), rescoring=how)
    assert checked.state == "refused"
    assert "of 10 items that were scored again (seed 1) have other scores (ids " in said(checked)


def test_a_run_cannot_bring_the_tolerance_by_which_it_is_verified(made: Made, tmp_path: Path) -> None:
    forged = change_record(exchanged(made.copy("score", tmp_path)), tolerance=1e9)
    assert check_submission(forged, rescoring=Rescoring(30, seed=0, model=by_words)).state == "refused"


def test_another_model_does_not_verify_a_run(made: Made) -> None:
    checked = check_submission(made.runs["score"], rescoring=Rescoring(5, seed=0, model=verbs.by_text))
    assert checked.state == "checked"
    assert "It was not scored again. by_text is not the model that" in said(checked, "unusual")


@pytest.mark.parametrize(
    ("kind", "text"), [("judge", "[[VERDICT]]"), ("pointwise", "[[RATING]]"), ("personas", "[[A]] [[70]]")]
)
def test_a_judge_is_asked_again_at_the_verifiers_endpoint(made: Made, kind: str, text: str) -> None:
    run = made.runs[kind]
    unasked = check_submission(run, rescoring=Rescoring(8, seed=0))
    assert unasked.state == "checked"
    assert "needs an endpoint that you trust" in said(unasked, "unusual")
    with serve(reply(text)) as server:
        connection = ConnectionConfig(base_url=server.base_url)
        checked = check_submission(run, rescoring=Rescoring(8, seed=0, connection=connection))
    assert checked.state == "verified"
    assert checked.rescored.endswith(("8 of 8 verdicts are equal", "16 of 16 verdicts are equal"))


def test_replies_that_a_judge_does_not_give_are_seen_by_asking_again(made: Made, tmp_path: Path) -> None:
    forged = replies_for_wins(made.copy("judge", tmp_path))
    with serve(reply("[[VERDICT]]")) as server:
        how = Rescoring(20, seed=0, connection=ConnectionConfig(base_url=server.base_url))
        checked = check_submission(forged, rescoring=how)
    assert checked.state == "refused"
    assert "were right only in the run, 0 only now." in said(checked)


def test_data_that_cannot_be_read_is_a_state_of_its_own(made: Made, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    invented = {"data": {"location": nowhere, "revision": "f" * 40}, "benchmark": {"title": f"Pairs ({nowhere})"}}
    checked = check_submission(change_config(made.copy("score", tmp_path), **invented))
    assert (checked.state, said(checked)) == ("consistent", "")
    assert "contains no texts, and its data cannot be read" in said(checked, "unusual")


def test_other_data_is_refused(made: Made, tmp_path: Path) -> None:
    run = made.runs["score"]
    for name in ("easy", "more"):
        (tmp_path / name).mkdir()
    easy = write(tmp_path / "easy" / "pairs.jsonl", [row | {"rejected": "?"} for row in rows()])
    assert f"{easy} does not have the texts of 30 items (ids q0, q1, q2, q3, q4, …)." in said(
        check_submission(run, files=RunInputs(str(easy)))
    )
    more = write(tmp_path / "more" / "pairs.jsonl", [*rows(), rows()[0] | {"id": "another"}])
    assert "items.parquet lacks 1 item (ids another) that" in said(check_submission(run, files=RunInputs(str(more))))


def test_prompts_that_tell_from_a_file_need_that_file(made: Made, tmp_path: Path) -> None:
    plans = write(tmp_path / "plans.jsonl", [{"id": f"q{n}", "aspects": [f"aspect {n}"]} for n in range(30)])
    with serve(reply("[[VERDICT]]")) as server:
        data, asked = made.folder / "pairs.jsonl", {"base_url": server.base_url, "orders": "one"}
        run = verbs.judge("j", benchmark="pairs", data=data, profile="plan", plans=plans, out=tmp_path / "run", **asked)
    without = check_submission(run)
    assert without.state == "consistent"
    assert "which the run does not contain; give that file (`plans=...`, `personas=...`)." in said(without, "unusual")
    assert check_submission(run, files=RunInputs(plans=Path(plans))).state == "checked"


def test_the_scores_of_another_under_a_new_name_are_remarked_upon(made: Made, tmp_path: Path) -> None:
    run, judge = made.runs["score"], made.runs["judge"]
    renamed = named(made.copy("score", tmp_path / "a"), "mine")
    assert "Its scores or replies are identical to those of by_words." in said(
        check_submission(renamed, [run, renamed]), "unusual"
    )
    replies = named(made.copy("judge", tmp_path / "b"), "mine")
    assert "Its scores or replies are identical to those of judge-1." in said(
        check_submission(replies, [judge, replies]), "unusual"
    )
    assert "are identical to" not in said(check_submission(run, list(made.runs.values())), "unusual")


MODELS = [(0.1, 1.0), (1.0, 1.0), (2.0, 1.0)]


@pytest.mark.parametrize(("mean", "spread"), MODELS)
@pytest.mark.parametrize("seed", range(5))
def test_margins_as_models_have_them_are_not_remarked_upon(mean: float, spread: float, seed: int) -> None:
    drawn = random.Random(seed)
    assert list(check_margins(run_of([margin(n, drawn.gauss(mean, spread)) for n in range(1000)]))) == []


@pytest.mark.parametrize("change", ["exchanged", "noisy labels"])
def test_margins_that_no_model_has_are_remarked_upon(change: str) -> None:
    drawn = random.Random(0)
    values = [drawn.gauss(0.1, 1) for _ in range(1000)]
    forged = {
        "exchanged": [abs(value) if drawn.random() < 0.9 else value for value in values],
        "noisy labels": [(1 if value > -1 else -1) * drawn.uniform(0.8, 1.2) for value in values],
    }
    (found,) = check_margins(run_of([margin(n, value) for n, value in enumerate(forged[change])]))
    assert found.about == "margins"
    assert ("nearest to 0, where models are right half the time" in found.text) == (change == "exchanged")


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded scores of real models are not here")
def test_the_margins_of_real_models_are_told_from_those_that_were_exchanged() -> None:
    lines = (RECORDED / "judgebench_rm_scores.jsonl").read_text(encoding="utf-8").splitlines()
    models: dict[str, list[float]] = defaultdict(list)
    for row in map(json.loads, lines):
        models[row["model"]].append((row["score_A"] - row["score_B"]) * (1 if row["label"] == "A>B" else -1))
    drawn = random.Random(0)
    for values in models.values():
        forged = [abs(value) if drawn.random() < 0.95 else value for value in values]
        for some, remarks in ((values, 0), (forged, 1)):
            assert len([*check_margins(run_of([margin(n, value) for n, value in enumerate(some)]))]) == remarks
    assert len(models) >= 3


def margin(number: int, value: float) -> Row:
    return decision(number, "win" if value > 0 else "loss", margin=value)


# A single file that was changed.


def test_numbers_that_the_items_do_not_give_are_seen(made: Made, tmp_path: Path) -> None:
    run = made.copy("score", tmp_path)
    own = {"group": "overall", "metric": "brilliance", "value": 1.0}
    values = json.loads((run.path / METRICS_FILE).read_text(encoding="utf-8"))
    rows = [values["rows"][0] | {"value": 0.99}, *values["rows"][2:], own]
    (run.path / METRICS_FILE).write_text(json.dumps(values | {"rows": rows}), encoding="utf-8")
    found = said(check_submission(load_run(run.path)))
    assert (
        "metrics.json has 1 numbers or intervals that do not follow from items.parquet, such as overall overall: "
        in found
    )
    assert "metrics.json has 1 numbers without a source in items.parquet, such as overall brilliance." in found
    assert "metrics.json lacks 1 numbers, such as" in found


def test_rows_that_contradict_themselves_are_seen(made: Made, tmp_path: Path) -> None:
    run = made.copy("score", tmp_path)
    pl.concat([run.items, run.items[:1]]).with_columns(outcome=pl.lit("win")).write_parquet(run.path / ITEMS_FILE)
    found = said(check_submission(load_run(run.path)))
    assert "items.parquet has 2 rows (ids q0) more than once." in found
    assert "items.parquet has outcomes that do not follow from its scores: " in found


@pytest.mark.parametrize(
    ("change", "parts", "sentence"),
    [
        (
            change_record,
            {"model": {"name": "better"}},
            "run.json records two different values of the name: by_words and better",
        ),
        (
            change_config,
            {"data": {"benchmark_digest": "d"}},
            "run.json records two different values of the benchmark: d and",
        ),
        (change_config, {"data": {"rows": {"pairs": 31}}}, "run.json records 31 items, but items.parquet has 30."),
    ],
)
def test_a_record_that_says_other_than_the_rest_is_seen(
    made: Made, tmp_path: Path, change: Callable[..., Run], parts: Row, sentence: str
) -> None:
    checked = check_submission(change(made.copy("score", tmp_path), **parts))
    assert checked.state == "refused"
    assert sentence in said(checked)


def test_verdicts_that_the_replies_do_not_say_are_seen(made: Made, tmp_path: Path) -> None:
    run = made.copy("judge", tmp_path)
    run = by_row(run, lambda row: row | CHOSEN)
    assert "verdicts do not follow from their replies (ids q" in said(check_submission(run))
    (run.path / LEDGER_FILE).unlink()
    assert "ledger.parquet is missing; verdicts need recorded replies." in said(check_submission(run))


def test_what_is_unusual_is_said(made: Made, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl", rows())
    run = verbs.score(lambda groups: [[1.0] * len(g.responses) for g in groups], benchmark="pairs", data=data, limit=5,
                      out=tmp_path / "same")  # fmt: skip
    checked = check_submission(run)
    found = said(checked, "unusual")
    assert checked.state == "checked"
    assert "It uses only the first 5 items of each config." in found
    assert "All scores are the same, 1." in found
    assert "Every decision is a tie." in found
    never = verbs.score(
        lambda groups: [[math.nan] * len(g.responses) for g in groups], benchmark="pairs", data=data,
        out=tmp_path / "nan",
    )  # fmt: skip
    checked = check_submission(never)
    assert checked.state == "checked"
    assert "30 of 30 decisions have no valid score or verdict (ids q0, q1, q2, q3, q4, …)." in said(checked, "unusual")


def test_a_run_on_other_data_than_the_others_is_unusual(made: Made, tmp_path: Path) -> None:
    scored = made.runs["score"]
    other = verbs.score(
        by_words, benchmark="pairs", data=write(tmp_path / "o.jsonl", rows()[:5]), out=tmp_path / "other"
    )
    found = said(check_submission(other, [scored, scored, other]), "unusual")
    assert f"Its data ({tmp_path / 'o.jsonl'}) differs from that of 2 of the 3 runs of this benchmark." in found
    assert "differs from that of" not in said(check_submission(scored, [scored, scored, other]), "unusual")


def test_what_was_too_long_is_found_again_by_the_models_tokenizer(
    classifiers: Callable[..., str], tmp_path: Path
) -> None:
    long = [row | {"prompt": row["prompt"] * (1 + 9 * (n % 3 == 0))} for n, row in enumerate(rows())]
    data = write(tmp_path / "pairs.jsonl", long)
    run = verbs.score(
        classifiers(), benchmark="pairs", data=data, out=tmp_path / "run", max_length=60, on_overflow="drop"
    )
    assert run.scored is not None
    assert 0 < run.scored.items_dropped < 30
    verified = check_submission(run, rescoring=Rescoring(30, seed=0))
    assert (verified.state, said(verified)) == ("verified", "")
    larger = change_record(copied(run, tmp_path / "larger"), model={"parameters": 10**9})
    assert "its parameters is " in said(check_submission(larger, rescoring=Rescoring(3, seed=0)), "unusual")
    forged = called_too_long(copied(run, tmp_path / "forged"))
    checked = check_submission(forged)
    assert checked.state == "refused"
    assert "items are truncated or dropped differently from what the model's tokenizer requires" in said(checked)


def test_a_model_is_scored_again_by_servers_that_hold_it(
    run: Command, classifiers: Callable[..., str], tmp_path: Path
) -> None:
    from engine_server import imitate

    data = write(tmp_path / "pairs.jsonl", rows())
    scored = verbs.score(classifiers(), benchmark="pairs", data=data, out=tmp_path / "run")
    exchanged(copied(scored, tmp_path / "forged"))
    with imitate("vllm", classifiers()) as server:
        again = ["--rescore", "6", "--seed", "1", "--server", server.url]
        status, done, _ = run("check", scored.path, *again)
        refused, forged, _ = run("check", tmp_path / "forged", *again)
        assert server.posts
    assert (status, refused) == (0, 1), done
    assert "verified by scoring again" in " ".join(done.split())
    assert "6 items that were scored again (seed 1) have other scores" in " ".join(forged.split())


def test_the_command_says_how_far_a_run_was_checked(run: Command, made: Made, tmp_path: Path) -> None:
    scored = made.copy("score", tmp_path)
    status, out, _ = run("check", scored.path)
    assert status == 0, out
    assert "checked against its data, with " in " ".join(out.split())
    assert "unusual: The model is a Python function" in out
    status, out, _ = run("check", scored.path, "--data", f"pairs={tmp_path / 'none.jsonl'}", "--json")
    (told,) = json.loads(out)
    assert (told["items_counted"], told["items"]) == (scored.items_counted, scored.items_total)
    assert (status, told["run"], told["state"], told["accepted"]) == (1, str(scored.path), "consistent", False)
    with_metrics(scored, scored.metrics.with_columns(value=0.99))
    status, out, _ = run("check", scored.path, "--json")
    (told,) = json.loads(out)
    assert (status, told["state"], told["accepted"]) == (1, "refused", False)
    assert told["findings"][0]["level"] == "refused"


def test_the_command_refuses_what_is_no_run(run: Command, tmp_path: Path) -> None:
    made_personalized(tmp_path / "personal", made_items(methods=["bt"], seeds=1, users=6))
    status, out, _ = run("check", tmp_path / "personal")
    assert (status, "not checked against its data" in " ".join(out.split())) == (1, True)
    assert run("check", tmp_path / "none") == (2, "", f"Error: The directory {tmp_path / 'none'} does not exist.\n")
