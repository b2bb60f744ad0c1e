"""Rankings by category in a run's metrics: the same as those of the measures alone, with intervals."""

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import run_of
from pluralbench import find_benchmark
from pluralbench.data.decisions import decide
from pluralbench.data.rows_to_items import ITEMS
from pluralbench.results import Run
from pluralbench_measures.rankings import overall_estimate, ranking_metrics

Prompt = tuple[str, str, list[int], list[float]]


def decisions(prompts: list[Prompt]) -> pl.DataFrame:
    rows = [
        {"config": config, "id": str(n), "cluster": f"c{n}", "subset": category, "rank": rank}
        | {"response_ids": [str(place) for place in range(len(rank))], "responses": [""] * len(rank)}
        for n, (config, category, rank, _) in enumerate(prompts)
    ]
    return decide(pl.DataFrame(rows, schema=ITEMS), [scores for *_, scores in prompts], [0] * len(rows))


def measured(frame: pl.DataFrame, *, legacy: bool = False) -> Run:
    return run_of(frame, "chinese", legacy=legacy)


@st.composite
def prompts(draw: st.DrawFn) -> list[Prompt]:
    made = []
    for _ in range(draw(st.integers(1, 8))):
        rank = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
        scores = [draw(st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("nan")])) for _ in rank]
        made.append((draw(st.sampled_from(["open", "human"])), draw(st.sampled_from("abc")), rank, scores))
    return made


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value)


@pytest.mark.heavy
@settings(max_examples=40)
@given(prompts(), st.booleans())
def test_the_numbers_are_those_of_the_measures_alone(made: list[Prompt], legacy: bool) -> None:
    run = measured(decisions(made), legacy=legacy)
    frame = pl.DataFrame(made, schema=["config", "category", "rank", "reward"], orient="row")
    expected = ranking_metrics(frame, legacy=legacy)
    assert run.headline.value == (None if run.unreadable else near(expected["overall"]))
    if not legacy and not run.unreadable:
        alone = overall_estimate(frame)
        assert (alone.low, alone.high) == (near(run.headline.low), near(run.headline.high))
        assert (alone.value, alone.clusters) == (near(run.headline.value), run.headline.clusters)
    assert run.estimate("accuracy").value == near(expected["accuracy"])
    assert run.estimate("exact_match").value == near(expected["exact_match"])
    assert run.estimate("ece").value == near(expected["calibration_error"])
    for config, cell in expected["configs"].items():
        accuracy, exact = run.estimate("accuracy", config=config), run.estimate("exact_match", config=config)
        assert (accuracy.value, exact.value) == (near(cell["accuracy"]), near(cell["exact_match"]))
        assert run.estimate("pooled_accuracy", config=config).n == cell["pairs"]
        assert exact.n == cell["prompts"]
        assert run.count("equal", config=config) == cell["without_pair"]
        for category, own in cell["categories"].items():
            for metric in ("accuracy", "exact_match"):
                found = run.estimate(metric, config=config, category=category)
                assert found.value == near(own[metric])


def many(seed: int, number: int = 60) -> list[Prompt]:
    draw = random.Random(seed)
    made = []
    for place in range(number):
        rank = [draw.randint(1, 5) for _ in range(5)]
        skill = draw.choice([0.4, 3.0])
        scores = [-skill * value + draw.gauss(0, 1) for value in rank]
        made.append((["open", "human"][place % 2], "abc"[place % 3], rank, scores))
    return made


@pytest.mark.parametrize("legacy", [False, True])
def test_every_number_has_its_interval_from_whole_prompts(legacy: bool) -> None:
    run = measured(decisions(many(0)), legacy=legacy)
    rows = run.metrics.filter(
        pl.col("metric").is_in(["overall", "accuracy", "exact_match", "pooled_accuracy", "pooled_exact_match"])
    )
    assert rows.height == 3 + 2 * (2 + 2 + 3 * 2) + 2
    for row in rows.iter_rows(named=True):
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
        assert row["clusters"] <= 60
    head = run.headline
    assert head.low is not None
    assert head.high is not None
    assert head.high - head.low > 0.02


def test_a_prompt_that_was_dropped_counts_for_nothing_by_either_rule() -> None:
    made = many(1, 12)
    for legacy in (False, True):
        whole = measured(decisions([*made, ("open", "a", [1, 2, 3], [])]), legacy=legacy)
        without = measured(decisions(made), legacy=legacy)
        assert whole.headline == without.headline
        assert whole.count("dropped", config="open") == 3
        assert whole.estimate("exact_match", config="open") == without.estimate("exact_match", config="open")


def test_calibration_says_what_is_in_each_bin() -> None:
    run = measured(decisions(many(2)))
    assert set(run.names("config", "ece")) == {"open", "human"}
    error = run.estimate("ece")
    bins = {
        name: {metric: run.estimate(f"bin_{metric}", bin=name) for metric in ("accuracy", "difference", "probability")}
        for name in run.names("bin", "bin_accuracy")
    }
    gaps = 0.0
    for found in bins.values():
        accuracy, probability = found["accuracy"], found["probability"].value
        assert accuracy.value is not None
        assert probability is not None
        assert accuracy.low is not None
        assert accuracy.high is not None
        assert accuracy.low <= accuracy.value <= accuracy.high
        gaps += (accuracy.n or 0) * abs(accuracy.value - probability)
    assert error.n == sum(found["accuracy"].n or 0 for found in bins.values())
    assert error.value == pytest.approx(gaps / (error.n or 1), rel=1e-9)
    differences = [found["difference"].value for _, found in sorted(bins.items())]
    assert differences == sorted(differences, key=lambda value: value or 0.0)
    assert error.low is not None
    assert error.high is not None
    assert 0 <= error.low < error.high <= 1
    legacy = measured(decisions(many(2)), legacy=True)
    assert legacy.estimate("ece").n == (error.n or 0) - 1


def test_other_benchmarks_have_no_calibration_and_no_legacy_rules_of_this_kind() -> None:
    run = run_of(decisions(many(4, 6)), "rankings")
    assert {"ece", "exact_match"}.isdisjoint(run.metrics["metric"])
    assert run.metrics["bin"].null_count() == run.metrics.height
    assert find_benchmark("multilingual", legacy=True).ties_break_exact_match
