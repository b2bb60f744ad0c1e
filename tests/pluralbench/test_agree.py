"""`agree`: our scores against published ones, and why they differ."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from pluralbench.config import RecheckConfig
from pluralbench.errors import RunError
from pluralbench.evaluation.agree import Agreement, LargestDifference, agree
from pluralbench.evaluation.causes import Diagnosis
from pluralbench.evaluation.reloading import reload_model
from pluralbench.reports.agreement import report_agreement
from pluralbench.reports.runs import overview
from pluralbench.results import Run
from reward_models import (
    BOS,
    ENDS_WITH_EOS,
    EOS,
    TEMPLATE,
    conversation_ids,
    load_plainly,
    logits_alone,
    logits_at_the_end,
    make_tokenizer,
    save_classifier,
    user,
)
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
SIDES = ("chosen", "rejected")
RECORDED = Path(__file__).parents[3] / "shared" / "data" / "suite" / "recorded"
SCORES, VERDICTS = (RECORDED / f"judgebench_{kind}.jsonl" for kind in ("rm_scores", "judge_verdicts"))
recorded = pytest.mark.skipif(not SCORES.exists(), reason="the recorded scores are not in this checkout")
SKYWORK = "Skywork/Skywork-Reward-Llama-3.1-8B"


def models() -> list[str]:
    return pl.read_ndjson(SCORES).select("model", "run").unique(maintain_order=True)["model"].to_list()


@recorded
@pytest.mark.parametrize(
    ("model", "accuracy"),
    [
        (SKYWORK, 62.29),
        ("Skywork/Skywork-Reward-Gemma-2-27B", 64.29),
        ("internlm/internlm2-20b-reward", 63.43),
        ("internlm/internlm2-7b-reward", 59.43),
        ("Ray2333/GRM-Gemma-2B-rewardmodel-ft", 59.43),
    ],
)
def test_recorded_scores_have_the_published_accuracy_and_equal_themselves(model: str, accuracy: float) -> None:
    if model not in models():
        pytest.skip(f"the scores of {model} are not in this checkout")
    rows = [f"model={model}", "run=official"]
    agreement = agree(SCORES, SCORES, where=rows, where_run=rows)
    assert [round(100 * (side.accuracy or 0), 2) for side in (agreement.first, agreement.second)] == [accuracy] * 2
    assert (agreement.items, agreement.decisions, agreement.changed) == (350, 350, ())
    assert [agreement.scores.pearson, agreement.margins.spearman] == pytest.approx([1, 1])
    assert agreement.mean_difference == 0


@recorded
def test_a_recorded_judge_is_compared_by_its_votes() -> None:
    model = next(name for name in models() if name.startswith("internlm"))
    agreement = agree(SCORES, VERDICTS, where_run=[f"model={model}"], where=["judge=o1-mini-2024-09-12"])
    assert round(100 * (agreement.second.accuracy or 0), 2) == 65.71
    assert (agreement.scores.n, agreement.largest) == (0, None)
    assert 0 < len(agreement.changed) < agreement.decisions == 350


def letters(rows: Sequence[tuple[str, str, float, float]]) -> Rows:
    return [{"pair_id": i, "label": label, "score_A": a, "score_B": b} for i, label, a, b in rows]


def test_equal_scores_decide_for_the_second_response_as_judgebench_does(tmp_path: Path) -> None:
    ours = write(
        tmp_path / "a.jsonl", letters([("1", "A>B", 1.0, 1.0), ("2", "B>A", 1.0, 1.0), ("3", "A>B", 2.0, 1.0)])
    )
    theirs = write(
        tmp_path / "b.jsonl", letters([("1", "A>B", 1.5, 1.0), ("2", "B>A", 0.0, 1.0), ("3", "A>B", 2.0, 1.5)])
    )
    agreement = agree(ours, theirs)
    assert [agreement.first.accuracy, agreement.second.accuracy] == pytest.approx([2 / 3, 1])
    [changed] = agreement.changed
    assert (changed.id, changed.chosen, changed.first, changed.second) == ("1", "A", "loss", "win")
    assert agreement.largest == LargestDifference("2", "A", 1.0, 0.0)


@pytest.fixture
def ours(score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path) -> Run:
    return score("pairs", write(tmp_path / "p.jsonl", pairs(20)))


def published(run: Run) -> pl.DataFrame:
    return run.items.select("id", "subset", scores_chosen="score_chosen", scores_rejected="score_rejected")


def test_a_run_agrees_with_its_own_files_and_another_run(ours: Run, tmp_path: Path) -> None:
    theirs = tmp_path / "scores.parquet"
    published(ours).write_parquet(theirs)
    for other in (theirs, ours.path, ours.path / "items.parquet"):
        agreement = agree(ours.path, other)
        assert (agreement.items, agreement.changed, agreement.mean_difference) == (20, (), 0)
        assert agreement.first.accuracy == agreement.second.accuracy == pytest.approx(ours.headline.value)
        assert agreement.not_rescored == ""


def test_what_is_missing_or_without_a_score_is_counted(ours: Run, tmp_path: Path) -> None:
    frame = published(ours)
    changed = pl.concat([frame[1:], frame[:1].with_columns(id=pl.lit("new"))]).with_columns(
        scores_chosen=pl.when(pl.col("id") == "q3").then(float("nan")).otherwise("scores_chosen"),
        scores_rejected=pl.when(pl.col("id") == "q4").then(99.0).otherwise("scores_rejected"),
    )
    changed.write_parquet(tmp_path / "theirs.parquet")
    agreement = agree(ours, tmp_path / "theirs.parquet")
    assert (agreement.items, agreement.first.missing, agreement.second.missing) == (19, ("q0",), ("new",))
    assert (agreement.first.unscored, agreement.second.unscored, agreement.scores.n) == (0, 1, 37)
    assert agreement.largest is not None
    assert (agreement.largest.id, agreement.largest.response, agreement.largest.second) == ("q4", "rejected", 99.0)
    outcomes = {decision.id: decision.second for decision in agreement.changed}
    assert outcomes["q3"] == "invalid"
    assert agreement.not_rescored == "its model is not a directory on this machine"


def test_files_without_a_common_id_are_refused(ours: Run, tmp_path: Path) -> None:
    theirs = write(tmp_path / "x.jsonl", [{"id": "zz", "score_chosen": 1, "score_rejected": 0}])
    with pytest.raises(RunError) as caught:
        agree(ours, theirs)
    assert str(caught.value) == (
        f"{ours.path} (ids q0, q1, q2, q3, q4, …) and {theirs} (ids zz) share no id; name the column of the ids with "
        '`columns=["id=..."]` (domain+id joins two columns).'
    )
    with pytest.raises(RunError, match=r"is a run, of which all items are compared; leave out `where_run=\.\.\.`"):
        agree(ours, theirs, where_run=["model=a"])


def test_responses_are_matched_by_name_and_by_rank(score: Callable[..., Run], tmp_path: Path) -> None:
    rows = [{"id": "a", "prompt": "a hobby", "responses": ["origami", "drumming", "tea"], "rank": [2, 1, 2]}]
    run = score("rankings", write(tmp_path / "r.jsonl", rows), by=lambda groups: [[0.1, 0.9, 0.5] for _ in groups])
    by_rank = write(tmp_path / "v2.jsonl", [{"id": "a", "subset": "x", "scores": [[0.9], [0.1], [0.5]], "results": 1}])
    agreement = agree(run, by_rank)
    assert (agreement.mean_difference, agreement.changed, agreement.second.stated) == (0, (), 1.0)
    fewer = write(tmp_path / "v3.jsonl", [{"id": "a", "scores": [0.9, 0.1], "results": 1}])
    agreement = agree(run, fewer)
    assert (agreement.unequal, agreement.items, agreement.scores.n) == (("a",), 0, 0)


@pytest.mark.parametrize(("slope", "intercept", "found"), [(2.0, -3.0, True), (1.0, 0.5, True), (-1.0, 0.0, False)])
def test_another_scale_is_named(ours: Run, tmp_path: Path, slope: float, intercept: float, found: bool) -> None:
    changed = published(ours).with_columns(pl.col("scores_chosen", "scores_rejected") * slope + intercept)
    changed.write_parquet(tmp_path / "theirs.parquet")
    agreement = agree(ours, tmp_path / "theirs.parquet")
    if found:
        assert agreement.scale == pytest.approx((slope, intercept))
        assert agreement.changed == ()
        assert f"Likely cause: another scale. The second scores are {slope:g} times the first {intercept:+g}." in (
            report_agreement(agreement).notes
        )
    else:
        assert agreement.scale is None


def test_accuracies_are_by_the_rule_of_the_benchmark_or_over_the_items_of_a_part(
    score: Callable[..., Run], tmp_path: Path
) -> None:
    kinds = ["Factuality", "Precise IF", "Math", "Safety", "Focus"]
    rows = [
        {"id": f"{n}", "subset": kind, "prompt": f"{n}?", "chosen": [f"yes {n}"], "rejected": ["a", f"b {n}", "c"]}
        for n, kind in enumerate([*kinds, "Math", "Math"])
    ]
    rows += [
        {"id": f"{twin}:1", "subset": "Ties", "prompt": f"{twin}?", "chosen": right, "rejected": ["no", "nope"]}
        for twin, right in (("ref", ["one"]), ("tied", ["one", "two"]))
    ]
    run = score("reward-bench-2", write(tmp_path / "rb.jsonl", rows))
    grouped = run.items.group_by("id", "subset", maintain_order=True).agg("score", right=(pl.col("rank") == 1).sum())
    file = [
        {"id": item, "subset": kind, "scores": scores, "num_correct": right, "results": 1.0}
        for item, kind, scores, right in grouped.iter_rows()
    ]
    whole = agree(run, write(tmp_path / "v2.jsonl", file))
    assert whole.first.accuracy == whole.second.accuracy == run.headline.value is not None
    assert whole.rule == run.config.benchmark.rule
    files = agree(tmp_path / "v2.jsonl", tmp_path / "v2.jsonl")
    assert files.first.accuracy == pytest.approx(run.headline.value)
    unknown = [{name: value for name, value in row.items() if name != "num_correct"} for row in file]
    assert agree(run, write(tmp_path / "v2.jsonl", unknown)).second.accuracy == run.headline.value
    assert agree(tmp_path / "v2.jsonl", tmp_path / "v2.jsonl").unlabeled == 2
    part = agree(run, write(tmp_path / "part.jsonl", file[:2]))
    assert part.rule == "mean over all items, since parts of the benchmark have none"
    right = [float(item["scores"][0] > max(item["scores"][1:])) for item in file[:2]]
    assert part.second.accuracy == pytest.approx(sum(right) / 2)


# Causes: files as other programs make them of the same model, with plain forward passes.

LONG = "walking with an old dog at dawn " * 100


def plain_ids(row: dict[str, Any], answer: str) -> list[int]:
    tokenizer = make_tokenizer()
    return [tokenizer.bos_token_id, *tokenizer(f"{row['prompt']}\n{answer}", add_special_tokens=False)["input_ids"]]


EDITS: dict[str, Callable[[list[int]], list[int]]] = {
    "two BOS tokens": lambda ids: [make_tokenizer().convert_tokens_to_ids(BOS), *ids],
    "no BOS token": lambda ids: ids[1:],
    "at most 512 tokens, the first cut": lambda ids: ids[-512:],
    "at most 512 tokens, the last cut": lambda ids: ids[:512],
}


@pytest.fixture(scope="module")
def rows(pairs: Callable[..., Rows]) -> Rows:
    made = pairs(6)
    made[0]["prompt"] = LONG + made[0]["prompt"]
    return made


@pytest.fixture(scope="module")
def scored(rows: Rows, model: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("scored")
    return verbs.score(model, benchmark="pairs", data=write(folder / "p.jsonl", rows), device="cpu", out=folder / "run")


def others(
    rows: Rows, model: str, out: Path, ids_of: Callable[[dict[str, Any], str], list[int]], dtype: str = "float32"
) -> Path:
    from transformers import AutoModelForSequenceClassification

    loaded = load_plainly(AutoModelForSequenceClassification, model, dtype)
    scores = [
        {f"scores_{side}": logits_alone(loaded, ids_of(row, row[side]))[0] for side in ("chosen", "rejected")}
        for row in rows
    ]
    return write(out / "theirs.jsonl", [{"id": row["id"]} | own for row, own in zip(rows, scores, strict=True)])


def diagnosis_of(agreement: Agreement) -> Diagnosis:
    assert agreement.diagnosis is not None, agreement.not_rescored
    return agreement.diagnosis


def usual_ids(row: dict[str, Any], answer: str, tokenizer: Any = None) -> list[int]:
    from pluralbench.contract import Group

    return conversation_ids(tokenizer or make_tokenizer(), Group(row["id"], user(row["prompt"]), [answer]), answer)


@pytest.mark.heavy
@pytest.mark.parametrize("cause", [*EDITS, "no chat template"])
def test_the_cause_of_other_scores_is_found(scored: Run, rows: Rows, model: str, tmp_path: Path, cause: str) -> None:
    if cause == "no chat template":
        theirs = others(rows, model, tmp_path, plain_ids)
    else:
        theirs = others(rows, model, tmp_path, lambda row, answer: EDITS[cause](usual_ids(row, answer)))
    found = diagnosis_of(agree(scored, theirs))
    assert found.cause == cause
    assert found.variants[0].name == cause
    assert found.variants[0].largest < 1e-3 < found.before.largest
    assert found.before.moved == 0
    assert "one BOS token" in found.unchanged
    assert len(found.ids) == 6


def test_another_token_that_is_read_is_the_cause(rows: Rows, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    tokenizer = make_tokenizer(pad=EOS, template=ENDS_WITH_EOS)
    folder = save_classifier(tmp_path / "model", tokenizer=tokenizer, pad_token_id=1)
    run = verbs.score(
        folder, benchmark="pairs", data=write(tmp_path / "p.jsonl", rows), device="cpu", out=tmp_path / "run"
    )
    loaded = load_plainly(AutoModelForSequenceClassification, folder)
    theirs = [
        {"id": row["id"]}
        | {f"scores_{side}": logits_at_the_end(loaded, usual_ids(row, row[side], tokenizer))[0] for side in SIDES}
        for row in rows
    ]
    found = diagnosis_of(agree(run, write(tmp_path / "theirs.jsonl", theirs)))
    assert found.cause == "the last token, also if it is the padding token"


@pytest.mark.heavy
def test_the_date_in_a_template_is_the_cause(rows: Rows, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    tokenizer = make_tokenizer(template="{{ strftime_now('%d %B %Y') }}\n" + TEMPLATE)
    folder = save_classifier(tmp_path / "model", tokenizer=tokenizer)
    run = verbs.score(
        folder, benchmark="pairs", data=write(tmp_path / "p.jsonl", rows), device="cpu", out=tmp_path / "run"
    )
    assert "Date that the chat template writes: 2024-07-26." in overview([run]).notes
    loaded = load_plainly(AutoModelForSequenceClassification, folder)  # whose template writes today's date
    theirs = [
        {"id": row["id"]}
        | {f"scores_{side}": logits_alone(loaded, usual_ids(row, row[side], tokenizer))[0] for side in SIDES}
        for row in rows
    ]
    found = diagnosis_of(agree(run, write(tmp_path / "theirs.jsonl", theirs)))
    assert found.cause == "today's date in the chat template"
    dated = verbs.score(
        folder, benchmark="pairs", data=tmp_path / "p.jsonl", device="cpu", out=tmp_path / "dated", date="2024-01-02"
    )
    assert reload_model(dated).date == "2024-01-02"


def test_a_template_of_a_file_is_the_cause_if_the_models_own_gives_the_published_scores(
    rows: Rows, model: str, tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}", encoding="utf-8")
    data = write(tmp_path / "p.jsonl", rows)
    run = verbs.score(model, benchmark="pairs", data=data, device="cpu", chat_template=template, out=tmp_path / "run")
    found = diagnosis_of(agree(run, others(rows, model, tmp_path, usual_ids)))
    assert (found.cause, found.before.moved) == ("the model's own chat template", 0)


@pytest.mark.heavy
def test_an_implicit_reward_has_causes_too_but_no_lengths(
    rows: Rows, language_models: Callable[..., str], tmp_path: Path
) -> None:
    folder, data = language_models(0), write(tmp_path / "p.jsonl", rows)
    template = tmp_path / "template.jinja"
    template.write_text(BOS + TEMPLATE, encoding="utf-8")
    ours, theirs = (
        verbs.score(
            folder, benchmark="pairs", data=data, device="cpu", kind="implicit", out=tmp_path / str(number), **options
        )
        for number, options in enumerate([{}, {"chat_template": template}])
    )
    found = diagnosis_of(agree(ours, theirs, recheck=RecheckConfig(items=3)))
    assert found.cause == "two BOS tokens"
    assert not any("at most" in name for name in (*found.unchanged, *(variant.name for variant in found.variants)))


def test_a_changed_model_is_no_likely_cause_but_refused(
    rows: Rows, model: str, classifiers: Callable[..., str], scored: Run, tmp_path: Path
) -> None:
    theirs = others(rows, model, tmp_path, lambda row, answer: EDITS["no BOS token"](usual_ids(row, answer)))
    agreement = agree(scored, theirs, recheck=RecheckConfig(model=classifiers(seed=1)))
    assert "is not the model that" in agreement.not_rescored


@pytest.mark.heavy
def test_rounding_is_named_and_strange_scores_have_no_cause(
    scored: Run, rows: Rows, model: str, tmp_path: Path
) -> None:
    rounded = diagnosis_of(
        agree(scored, others(rows, model, tmp_path, usual_ids, "bfloat16"), recheck=RecheckConfig(items=4))
    )
    assert rounded.cause == "bfloat16 in place of float32" or rounded.rounding == "bfloat16"
    assert len(rounded.ids) == 4
    strange = pl.DataFrame(
        {"id": [row["id"] for row in rows], "score_chosen": [7.0] * 6, "score_rejected": [-50.0] * 6}
    )
    strange.write_csv(tmp_path / "strange.csv")
    found = diagnosis_of(agree(scored, tmp_path / "strange.csv", recheck=RecheckConfig(items=2)))
    assert (found.cause, found.rounding) == (None, None)


def test_items_that_cannot_be_scored_again_are_no_error(scored: Run, rows: Rows, model: str, tmp_path: Path) -> None:
    theirs = write(tmp_path / "t.jsonl", [{"id": row["id"], "score_chosen": 1, "score_rejected": 0} for row in rows])
    assert agree(scored, theirs, recheck=RecheckConfig(items=0)).not_rescored == "no items were to be scored again"
    moved = agree(scored, theirs, recheck=RecheckConfig(data=str(tmp_path / "gone.jsonl")))
    assert moved.diagnosis is None
    assert "gone.jsonl" in moved.not_rescored
    same = agree(scored, others(rows, model, tmp_path, usual_ids))
    assert same.not_rescored == "the scores agree within the tolerance of the run"
    files = agree(theirs, scored)
    assert files.not_rescored == "the first scores are a file, not a run"


def test_the_command_prints_tables_markdown_and_json(
    run: Command, scored: Run, rows: Rows, model: str, tmp_path: Path
) -> None:
    theirs = others(rows, model, tmp_path, lambda row, answer: EDITS["two BOS tokens"](usual_ids(row, answer)))
    status, out, err = run("agree", scored.path, "--published", theirs, "--rescore", "2")
    assert (status, err) == (0, "")
    assert "6 matched items" in out
    assert "Likely cause: two BOS tokens (mean difference" in out
    assert "2 items scored again, against the second scores" in out
    status, out, _ = run("agree", scored.path, "--published", theirs, "--format", "markdown", "--rescore", "0")
    assert status == 0
    assert "| scores | 12 |" in " ".join(out.replace("|", " | ").split()).replace("  ", " ")
    assert "Likely cause: not examined, since no items were to be scored again." in out
    status, out, _ = run("agree", scored.path, "--published", theirs, "--format", "json", "--rescore", "0")
    values = json.loads(out)
    assert (status, values["items"], values["scores"]["n"]) == (0, 6, 12)


def test_the_command_names_its_options_in_errors(run: Command, ours: Run, tmp_path: Path) -> None:
    rows = [{"model": m, "id": "q0", "score_chosen": 1, "score_rejected": 0} for m in "ab"]
    theirs = write(tmp_path / "t.jsonl", rows)
    status, out, err = run("agree", ours.path, "--published", theirs)
    assert (status, out) == (2, "")
    assert err == (
        f"Error: {theirs} has 2 rows for 1 ids (such as q0); choose the rows of one model, such as `--where model=a`.\n"
    )


def test_a_judge_without_scores_is_not_scored_again(ours: Run, tmp_path: Path) -> None:
    rows = [{"id": row, "outcome": "win"} for row in ours.items["id"]]
    agreement = agree(ours, write(tmp_path / "o.jsonl", rows))
    assert (agreement.second.accuracy, agreement.scores.n, agreement.diagnosis) == (1.0, 0, None)
    assert len(agreement.changed) == round(20 * (1 - (agreement.first.accuracy or 0)))


@recorded
def test_the_recorded_rerun_differs_in_one_decision() -> None:
    runs = pl.read_ndjson(SCORES)["run"].unique().to_list()
    if "rerun-gozcam" not in runs:
        pytest.skip("the rerun is not in this checkout")
    official = [f"model={SKYWORK}", "run=official"]
    agreement = agree(SCORES, SCORES, where=official, where_run=["run=rerun-gozcam"])
    assert [round(100 * (side.accuracy or 0), 2) for side in (agreement.second, agreement.first)] == [62.29, 62.0]
    assert len(agreement.changed) == 1
    assert agreement.largest is not None
    assert round(abs(agreement.largest.first - agreement.largest.second), 2) <= 0.69
