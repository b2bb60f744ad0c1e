"""ProcessBench: the first wrong step of an answer, its F1, thresholds, and what is refused."""

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import verbs
from hypothesis import given, settings
from hypothesis import strategies as st
from killing import stopped_at
from pluralbench import DataConfig, LocalModel, find_benchmark, load_items
from pluralbench.contract import Group
from pluralbench.data.column_types import BASE
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.first_error import step_decisions, tuned_threshold
from pluralbench.errors import BenchmarkError, DataError, EvaluationError
from pluralbench.metrics import measure
from pluralbench.metrics.accuracy import accuracy_estimates
from pluralbench.metrics.decided import Decided
from pluralbench.publishing.model_card import eval_results
from pluralbench.results import Run
from polars.testing import assert_frame_equal
from process_models import published_steps, save_process_model
from written_tables import write

Row = dict[str, Any]
Command = Callable[..., tuple[int, str, str]]
SPLITS = ("gsm8k", "math", "olympiadbench", "omnimath")
PROCESSBENCH = find_benchmark("processbench")


def predicted(scores: Sequence[float], threshold: float) -> int:
    """As the published evaluation: the first step that is called wrong, or -1."""
    for number, score in enumerate(scores):
        if score < threshold:
            return number
    return -1


def published_f1(answers: Sequence[tuple[int, Sequence[float]]], threshold: float) -> float | None:
    """F1 of labels and scores by predictions; None without answers of both kinds."""
    wrong = [predicted(scores, threshold) == label for label, scores in answers if label != -1]
    right = [predicted(scores, threshold) == label for label, scores in answers if label == -1]
    if not wrong or not right:
        return None
    a, b = sum(wrong) / len(wrong), sum(right) / len(right)
    return 2 * a * b / (a + b) if a + b else 0.0


def rows_of(configs: Mapping[str, Sequence[tuple[int, Sequence[float]]]], threshold: float) -> pl.DataFrame:
    """Rows of `items.parquet` of labels and scores; a score of None drops its answer."""
    rows = []
    for config, answers in configs.items():
        for place, (label, scores) in enumerate(answers):
            item = f"{config}-{place}"
            subset = "correct" if label == -1 else "erroneous"
            of_item = dict(zip(BASE, (config, item, item, subset, "0"), strict=True))
            for number, score in enumerate(scores):
                rank = 1 if label == -1 or number < label else 2
                outcome = "scored" if math.isfinite(score) else "invalid"
                rows.append(
                    of_item
                    | {"response": f"step {number}", "rank": rank, "score": score, "tokens_cut": 0}
                    | {"outcome": outcome, "threshold": threshold}
                )
    return pl.DataFrame(rows)


PROBABILITIES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, list[float]]:
    scores = draw(st.lists(PROBABILITIES, min_size=1, max_size=4))
    return draw(st.integers(-1, len(scores) - 1)), scores


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(answers(), min_size=1, max_size=6), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.2, 0.25, 0.5, 0.6, 1.0, 1.5]),
)
def test_the_numbers_are_those_of_predictions(drawn: list[list[tuple[int, list[float]]]], threshold: float) -> None:
    """A config without erroneous or without correct answers has no F1, and then there is no overall number."""
    configs = dict(zip(SPLITS, drawn, strict=False))
    rows = rows_of(configs, threshold)
    decisions = step_decisions(rows)
    right = [predicted(scores, threshold) == label for own in configs.values() for label, scores in own]
    assert decisions["outcome"].to_list() == ["win" if one else "loss" for one in right]
    assert all((margin >= 0) >= won for margin, won in zip(decisions["margin"], right, strict=True))
    numbers = measure(PROCESSBENCH, decisions, responses=rows)
    expected = {config: published_f1(own, threshold) for config, own in configs.items()}
    found = dict(numbers.filter(metric="f1").select("config", "value").iter_rows())
    assert found.keys() == expected.keys()
    for config, value in expected.items():
        assert found[config] == (None if value is None else pytest.approx(value))
    [overall] = numbers.filter(metric="overall")["value"]
    values = [value for value in expected.values() if value is not None]
    assert overall == (pytest.approx(np.mean(values)) if len(values) == len(expected) else None)
    assert numbers.filter(metric="threshold")["value"].to_list() == [threshold]


@settings(deadline=None, max_examples=40)
@given(st.lists(answers(), min_size=1, max_size=8))
def test_no_threshold_has_a_larger_f1_than_the_tuned_one(drawn: list[tuple[int, list[float]]]) -> None:
    tuned = tuned_threshold(rows_of({"gsm8k": drawn}, 0.5))
    others = [published_f1(drawn, threshold) or 0.0 for threshold in np.arange(-0.1, 1.2, 0.05)]
    assert (published_f1(drawn, tuned) or 0.0) == pytest.approx(max(others))


def test_scores_that_decide_must_be_finite() -> None:
    nan = math.nan
    own = [(-1, [0.9, nan]), (1, [nan, 0.1]), (1, [0.9, 0.1, nan]), (0, [nan]), (0, [0.1, nan]), (-1, [nan, 0.1])]
    decisions = step_decisions(rows_of({"gsm8k": own}, 0.5))
    assert decisions["outcome"].to_list() == ["invalid", "invalid", "win", "invalid", "win", "invalid"]
    numbers = measure(PROCESSBENCH, decisions)
    assert numbers.filter(metric="invalid", config="gsm8k")["value"].to_list()[0] == 4
    [f1] = numbers.filter(metric="f1")["value"]
    assert f1 == 0, "invalid answers count, and are not right"


@pytest.mark.heavy
def test_the_interval_covers_the_f1() -> None:
    """Answers are drawn whose accuracies are known; nearly 95 % of the intervals contain their F1."""
    draw = np.random.default_rng(3)
    a, b, inside, draws = 0.4, 0.8, 0, 150
    truth = 2 * a * b / (a + b)
    for _ in range(draws):
        hits = [(0, [0.1 if draw.random() < a else 0.9]) for _ in range(60)]
        hits += [(-1, [0.9 if draw.random() < b else 0.1]) for _ in range(40)]
        decisions = step_decisions(rows_of({"gsm8k": hits}, 0.5))
        f1 = dict(accuracy_estimates(Decided(PROCESSBENCH, decisions)))[MetricKey("f1", "gsm8k")]
        assert f1.low is not None
        assert f1.high is not None
        inside += f1.low <= truth <= f1.high
    assert 0.91 <= inside / draws <= 0.99


def answer(**changed: Any) -> Row:
    return {"id": "a", "problem": "Why?", "steps": ["So.", "Thus."], "label": 1} | changed


BAD: dict[str, tuple[Row, str]] = {
    "beyond": (answer(label=2), "the label 2 in `label` is beyond the 2 steps, of which the first is 0"),
    "below": (answer(label=-2), "the label -2 in `label` is below -1"),
    "fraction": (answer(label=0.5), "the label 0.5 in `label` is not a whole number"),
    "text": (answer(label="first"), "the label 'first' in `label` is not a whole number"),
    "none": (answer(label=None), "the label None in `label` is not a whole number"),
    "no steps": (answer(steps=[]), "`steps` is empty; an answer has at least one step"),
    "blank": (answer(steps=["So.", " "]), "step 1 in `steps` is empty"),
    "one text": (answer(steps="So. Thus."), "`steps` is not a list: 'So. Thus.'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused_by_name(tmp_path: Path, case: str) -> None:
    row, said = BAD[case]
    data = write(tmp_path / "gsm8k.jsonl", [answer(id="fine"), row])
    with pytest.raises(DataError, match=re.escape(said)) as failed:
        load_items("processbench", DataConfig(location=str(data)))
    assert "at id a: " in str(failed.value)


def test_columns_of_ones_own(tmp_path: Path) -> None:
    row = {"id": "a", "q": "Why?", "parts": json.dumps(["So.", "Thus."]), "first": "-1", "kind": "x"}
    data = write(tmp_path / "mine.jsonl", [row])
    columns = ("prompt=q", "steps=parts", "first_wrong=first")
    own = DataConfig(location=str(data), columns=columns, split="mine")
    [item] = load_items("processbench", own).frame.iter_rows(named=True)
    assert (item["responses"], item["rank"], item["subset"]) == (["So.", "Thus."], [1, 1], "correct")
    with pytest.raises(DataError, match=r"have the subsets correct and erroneous; leave out the column `kind`"):
        load_items("processbench", own.model_copy(update={"columns": (*columns, "subset=kind")}))
    for keys in ('overall = "F1"', 'columns = { steps = "s", first_wrong = "l" }', "step_threshold = 0.4"):
        file = tmp_path / "mine.toml"
        file.write_text(f'title = "Mine"\n{keys}\n', encoding="utf-8")
        with pytest.raises(BenchmarkError, match=r"require"):
            find_benchmark(str(file))


def of_steps(groups: Sequence[Group]) -> list[list[float]]:
    """Scores from 0 to 1 by the texts of steps, as a model in Python may read them."""
    for group in groups:
        assert [*group.responses] == ["\n\n".join(group.steps[: end + 1]) for end in range(len(group.steps))]
    return [[random.Random(f"{group.prompt}{step}x").uniform(0.3, 1) for step in group.steps] for group in groups]


def score_sample(model: Any, out: Path, **options: Any) -> Run:
    return verbs.score(model, benchmark="processbench", data="sample", out=out, **options)


def second_numbers(run: Run, threshold: float) -> list[float]:
    """The F1 of each split of the sample and their mean, from the files of the sample and the scores of a run."""
    values = []
    sample = Path(str(load_items.__globals__["__file__"])).parent / "samples" / "processbench"
    for split in SPLITS:
        rows = [json.loads(line) for line in (sample / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
        scores = run.items.filter(config=split).group_by("id", maintain_order=True).agg("score")
        by_id = dict(scores.iter_rows())
        value = published_f1([(row["label"], by_id[row["id"]]) for row in rows], threshold)
        assert value is not None
        values.append(value)
    return [*values, sum(values) / len(values)]


def numbers_of(run: Run) -> list[float | None]:
    return [*(run.estimate("f1", config=split).value for split in SPLITS), run.headline.value]


def test_a_run_of_the_sample(tmp_path: Path, run: Command) -> None:
    plain = score_sample(of_steps, tmp_path / "plain")
    assert numbers_of(plain) == pytest.approx(second_numbers(plain, 0.5))
    assert {plain.estimate("threshold").value, plain.items_counted} == {0.5, 24}
    other = score_sample(of_steps, tmp_path / "other", step_threshold=0.3)
    assert numbers_of(other) == pytest.approx(second_numbers(other, 0.3))
    tuned = score_sample(of_steps, tmp_path / "tuned", tune_step_threshold="gsm8k")
    threshold = tuned.estimate("threshold").value
    assert threshold is not None
    assert numbers_of(tuned) == pytest.approx(second_numbers(tuned, threshold))
    assert tuned.estimate("f1", config="gsm8k").value == max(
        second_numbers(tuned, number / 100)[0] for number in range(1, 100)
    )
    assert verbs.config(tuned.path)["benchmark"]["description"]["tune_step_threshold"] == "gsm8k"
    status, said, error = run("report", plain.path, other.path, tuned.path)
    said = " ".join(said.split())
    assert (status, error) == (0, "")
    for words in ("erroneous", "correct", "olympiadbench", "of_steps (threshold 0.3)", f"{threshold:.3f}"):
        assert words in said
    assert "Threshold tuned on test data: of_steps (threshold" in said
    status, said, _ = run("compare", plain.path, tuned.path)
    assert (status, "F1 (harmonic mean)" in " ".join(said.split())) == (0, True)
    status, said, _ = run("show", plain.path, "--id", "math-1")
    assert (status, "Step 1, first wrong, score" in said) == (0, True)


@pytest.mark.heavy
def test_every_report_shows_the_splits(tmp_path: Path, run: Command) -> None:
    plain = score_sample(of_steps, tmp_path / "plain")
    tuned = score_sample(of_steps, tmp_path / "tuned", tune_step_threshold="gsm8k")
    assert run("check", plain.path)[0] == 0
    for form in ("latex", "csv", "json", "markdown"):
        status, said, _ = run("report", plain.path, "--format", form)
        assert (status, "olympiadbench" in said) == (0, True)
    results = eval_results(plain)
    assert [one.metric_name for one in results] == ["Overall", *["F1"] * 4]
    assert {one.metric_type for one in results} == {"f1"}
    page = tmp_path / "page.html"
    assert run("report", plain.path, tuned.path, "--html", page)[0] == 0
    assert "Threshold tuned on test data" in page.read_text(encoding="utf-8")


def test_a_split_without_correct_answers_has_no_number(tmp_path: Path, run: Command) -> None:
    rows = [answer(id=f"{place}", problem=f"Why {place}?", label=place % 2) for place in range(6)]
    data = write(tmp_path / "gsm8k.jsonl", rows)
    scored = verbs.score(of_steps, benchmark="processbench", data=data, split="gsm8k", out=tmp_path / "run")
    assert scored.headline.value is None
    [config] = scored.configs
    assert (
        run("report", scored.path)[1].count(f"Answers without which a config has no F1: correct ones of {config}.") == 1
    )
    with pytest.raises(BenchmarkError, match=r"cannot be tuned on gsm, which has no erroneous and no correct answers"):
        score_sample(of_steps, tmp_path / "tuned", tune_step_threshold="gsm")


def test_what_gives_no_score_of_a_step_is_refused(tmp_path: Path, run: Command) -> None:
    with pytest.raises(
        EvaluationError, match=r"by_length gives a step the score .*, so its scores are no probabilities"
    ):
        score_sample(verbs.by_length, tmp_path / "run")
    score_sample(verbs.by_length, tmp_path / "run", step_threshold=40.0)  # nothing was kept that would be in the way
    for words in (
        ["judge", "local"],
        ["train", "local", "--out", tmp_path / "m"],
        ["best-of-n", "--policy", "local", "--reward", "local"],
    ):
        status, _, said = run(*words, "--benchmark", "processbench", "--data", "sample")
        assert status == 2
        assert "The benchmark processbench has answers in steps, each of which needs a score" in said
    status, _, said = run("score", "local", "--step-threshold", "0.5", "--benchmark", "pairs", "--data", "sample")
    assert (status, "Pairs: `--step-threshold 0.5` requires `overall = " in said) == (2, True)
    with pytest.raises(
        BenchmarkError, match=r"Pairs: `columns.steps` and `overall = .* require each other; leave it out"
    ):
        find_benchmark("pairs", columns=("steps=parts", "first_wrong=label"))
    with pytest.raises(BenchmarkError, match=r"exclude each other"):
        score_sample(of_steps, tmp_path / "both", step_threshold=0.5, tune_step_threshold="math")
    with pytest.raises(BenchmarkError, match=r"leave out `shard"):
        score_sample(of_steps, tmp_path / "shard", tune_step_threshold="math", shard="1/2")


def test_shards_make_the_whole_run(tmp_path: Path) -> None:
    import pluralbench

    whole = score_sample(of_steps, tmp_path / "whole")
    parts = [score_sample(of_steps, tmp_path / f"part{one}", shard=f"{one}/2").path for one in (1, 2)]
    merged = pluralbench.merge(parts, out=tmp_path / "merged")
    assert_frame_equal(merged.items, whole.items)
    assert_frame_equal(merged.metrics, whole.metrics)


@pytest.mark.heavy
def test_a_process_model_is_killed_and_resumed(tmp_path: Path) -> None:
    """The scores are those of the published way of reading; what was scored before is not scored again."""
    from pluralbench_local import LocalRewardModel

    folder = save_process_model(tmp_path / "model", "qwen")
    model = LocalModel(name=folder, aggregation="last", device="cpu")
    with stopped_at(3, LocalRewardModel, "scores_of_steps"):
        score_sample(model, tmp_path / "run", token_budget=150)
    run = score_sample(model, tmp_path / "run", token_budget=150)
    resumed = verbs.scoring(run).items_resumed
    assert 0 < resumed < 24
    assert verbs.work(run).conversations == 24 - resumed
    whole = score_sample(model, tmp_path / "whole")
    assert_frame_equal(run.items, whole.items, abs_tol=1e-5, rel_tol=0)
    assert numbers_of(run) == numbers_of(whole) == pytest.approx(second_numbers(whole, 0.5))
    [item] = (
        load_items("processbench", DataConfig(location="sample", configs=("math",))).frame[:1].iter_rows(named=True)
    )
    group = Group("q", item["prompt"], ["\n\n".join(item["responses"])])
    [expected] = published_steps(folder, "qwen", group, "float32")
    assert whole.items.filter(config="math", id="math-0")["score"].to_list() == pytest.approx(expected, abs=1e-4)
    assert whole.result.model.settings["aggregation"] == "last"
