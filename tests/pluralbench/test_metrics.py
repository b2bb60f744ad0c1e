"""From decisions to accuracies: what counts, by which weights, and what order has to do with it (nothing)."""

import math
import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import Row, decision, run_of
from pluralbench import find_benchmark, load_items
from pluralbench.data.column_types import OUTCOMES
from pluralbench.data.decisions import decide, score_items
from pluralbench.data.rows_to_items import ITEMS
from pluralbench.metrics.calibration import scores_log_odds
from pluralbench.metrics.frame import KEY
from pluralbench_rewards import ModelRecord, Scored

NAN = float("nan")


@pytest.mark.parametrize(
    ("fields", "log_odds"),
    [
        ({}, True),
        ({"label": "logit:-1"}, True),
        ({"label": "softmax:1"}, False),
        ({"label": "mean"}, False),
        ({"label": "logits:0.5,1:0.5"}, False),
        ({"settings": {"normalized": True}}, False),
        ({"kind": "function"}, False),
    ],
)
def test_probabilities_and_sums_of_attributes_are_no_log_odds(fields: dict[str, Any], log_odds: bool) -> None:
    assert scores_log_odds(ModelRecord(**({"name": "m", "kind": "classifier"} | fields))) is log_odds


def test_accuracy_is_strict_and_everything_else_is_counted() -> None:
    outcomes = ["win"] * 5 + ["loss"] * 3 + ["tie"] * 2 + ["invalid"] * 2 + ["dropped"] * 4 + ["equal"] * 3
    run = run_of([decision(number, outcome) for number, outcome in enumerate(outcomes)])
    counts = [run.count(name) for name in ("items", "wins", "losses", "ties", "invalid", "dropped", "equal")]
    assert counts == [19, 5, 3, 2, 2, 4, 3]
    pooled = run.estimate("pooled_accuracy")
    assert pooled.n == 12
    assert pooled.value == pytest.approx(5 / 12), "ties and invalid ones are wrong, not half"
    assert run.estimate("accuracy_of_valid").value == pytest.approx(5 / 10)
    assert run.estimate("mean_margin").value == pytest.approx((5 - 6) / 10)


def test_the_overall_number_is_by_the_benchmarks_rule() -> None:
    rows = [decision(n, config="small") for n in range(2)] + [decision(n, "loss", config="large") for n in range(8)]
    assert run_of(rows).headline.value == pytest.approx(0.2)
    by_config = run_of(rows, "personalized")
    assert by_config.headline.value == pytest.approx(0.5)
    assert by_config.estimate("pooled_accuracy").value == pytest.approx(0.2)
    assert "unweighted mean of the configs" in by_config.config.benchmark.rule


def rewardbench(right: dict[str, float], per_subset: int = 10) -> list[Row]:
    benchmark = find_benchmark("reward-bench")
    subsets = [subset for weights in benchmark.sections.values() for subset in weights]
    return [
        decision(
            place * per_subset + number,
            "win" if number < round(right.get(subset, 1.0) * per_subset) else "loss",
            subset=subset,
            config="default",
        )
        for place, subset in enumerate(subsets)
        for number in range(per_subset)
    ]


def sections(rows: Sequence[Row]) -> dict[str, float | None]:
    run = run_of(rows, "reward-bench")
    names = run.names("section")
    return {name: run.estimate("accuracy", config="default", section=name).value for name in names}


def test_mathematics_weighs_as_much_as_all_code_whatever_the_rows() -> None:
    found = sections(rewardbench({"math-prm": 0.2, "hep-go": 0.5}))
    assert found["Reasoning"] == pytest.approx((984 * 0.2 + 164 * 0.5 + 164 * 5) / (2 * 984))
    assert found["Chat"] == 1.0


def test_a_section_weighs_its_subsets_by_their_counts_and_the_overall_weighs_sections_alike() -> None:
    rows = rewardbench({"xstest-should-respond": 0.4, "mt-bench-hard": 0.0})
    safety = find_benchmark("reward-bench").sections["Safety"]
    lost = 0.6 * safety["xstest-should-respond"] / sum(safety.values())
    expected = {"Chat": 1.0, "Chat Hard": 1 - 37 / 456, "Safety": 1 - lost, "Reasoning": 1.0}
    assert sections(rows) == pytest.approx(expected)
    assert run_of(rows, "reward-bench").headline.value == pytest.approx(fmean(expected.values()))


def test_a_subset_says_in_which_section_it_is_and_one_in_none_says_so() -> None:
    rows = [*rewardbench({}), decision(1, subset="new", config="default"), decision(2, subset=None, config="default")]
    run = run_of(rows, "reward-bench")
    assert run.estimate("accuracy", config="default", subset="new").n == 1
    assert run.estimate("accuracy", config="default", section="Reasoning", subset="hep-go").n == 10
    assert run.estimate("pooled_accuracy", config="default").n == 232


def test_a_run_in_which_nothing_counts_has_counts_and_no_accuracy() -> None:
    for benchmark in ("pairs", "personalized", "reward-bench", "chinese"):
        run = run_of([decision(1, "dropped"), decision(2, "equal")], benchmark)
        assert (run.headline.value, run.headline.low, run.headline.high) == (None, None, None)
        assert (run.estimate("pooled_accuracy").n, run.count("dropped"), run.count("equal")) == (0, 1, 1)


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.sampled_from("abc")), min_size=1, max_size=30))
@settings(max_examples=30)
def test_the_mean_of_the_configs_is_the_overall_number(made: list[tuple[str, str]]) -> None:
    run = run_of([decision(n, outcome, config=config) for n, (outcome, config) in enumerate(made)], "personalized")
    values = [run.estimate("accuracy", config=config).value for config in run.configs]
    present = [value for value in values if value is not None]
    assert run.headline.value == (
        pytest.approx(fmean(present)) if len(present) == len(values) and not run.unreadable else None
    )


def test_what_was_truncated_is_counted_by_item_also_where_configs_share_ids() -> None:
    rows = [decision(n, truncated=n < 2, config=config) for config in ("fr", "zh") for n in (0, 0, 1, 2, 3)]
    run = run_of(rows, "multilingual")
    assert [run.count("truncated", config=config) for config in ("fr", "zh")] == [2, 2]
    assert run.count("truncated") == 4


def test_an_item_with_an_invalid_decision_has_no_credit_among_the_valid_ones() -> None:
    outcomes = [(0, "win"), (0, "invalid"), (1, "win"), (1, "win"), (2, "loss"), (2, "win")]
    run = run_of([decision(n, outcome, rejected=f"w{at}") for at, (n, outcome) in enumerate(outcomes)], "rewardmath")
    assert (run.headline.value, run.headline.n) == (1 / 3, 3)
    valid = run.estimate("accuracy_of_valid")
    assert (valid.value, valid.n) == (1 / 2, 2)


def test_rows_of_responses_say_what_became_of_each() -> None:
    benchmark = find_benchmark("rankings")
    items = load_items(benchmark, "sample").frame.head(2)
    dropped, others = items["rank"].list.len().to_list()
    scored = Scored([[], [NAN, *[1.0] * (others - 1)]], dropped={0: "too long"})
    frame = score_items(benchmark, items, scored, decide(items, scored.scores))
    assert frame["outcome"].to_list() == ["dropped"] * dropped + ["invalid"] + ["scored"] * (others - 1)
    assert (frame["score"].null_count(), frame["reason"].to_list()[0]) == (dropped, "too long")
    assert frame["response"].to_list() == [name for names in items["response_ids"] for name in names]


def ranking(scores: Sequence[float], ranks: Sequence[int], number: int = 0, category: str = "a") -> pl.DataFrame:
    names = [str(place) for place in range(len(ranks))]
    row: Row = {"config": "open", "id": str(number), "cluster": str(number), "subset": category, "prompt": []}
    row |= {"response_ids": names, "responses": names, "rank": list(ranks), "profile": None, "aspects": None}
    return decide(pl.DataFrame([row], schema=ITEMS), [list(scores)], [0])


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0.0, 1.0, 2.0, 3.0])), min_size=2, max_size=6))
def test_each_pair_of_unlike_rank_is_one_strict_decision(responses: list[tuple[int, float]]) -> None:
    ranks, scores = [rank for rank, _ in responses], [value for _, value in responses]
    found = ranking(scores, ranks)
    expected = [
        "win" if scores[a] > scores[b] else "loss" if scores[a] < scores[b] else "tie"
        for a in range(len(ranks))
        for b in range(len(ranks))
        if ranks[a] < ranks[b]
    ]
    assert sorted(found["outcome"]) == sorted(expected or ["equal"])
    if expected:
        run = run_of(found, "chinese")
        assert run.estimate("pooled_accuracy").value == pytest.approx(expected.count("win") / len(expected))
        assert run.estimate("pooled_exact_match", config="open").value == float(set(expected) == {"win"})


@pytest.mark.parametrize("values", [(NAN, 1.0), (1.0, NAN), (math.inf, math.inf), (-math.inf, 1.0), (math.inf, 0.0)])
def test_scores_that_are_no_numbers_decide_nothing(values: tuple[float, float]) -> None:
    assert ranking(values, [1, 2])["outcome"].to_list() == ["invalid"]
    assert ranking([], [1, 2])["outcome"].to_list() == ["dropped"]


@pytest.mark.heavy
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["pairs", "personalized", "multilingual", "chinese"]))
def test_the_order_of_the_rows_changes_no_metric(seed: int, benchmark: str) -> None:
    draw = random.Random(seed)
    rows = [
        decision(
            number,
            draw.choice(OUTCOMES),
            config=draw.choice(["a", "b"]),
            cluster=f"u{draw.randrange(9)}",
            subset=draw.choice(["math-prm", "hep-go", "donotanswer", None]),
            truncated=draw.random() < 0.2,
        )
        for number in range(40)
    ]
    before = run_of(rows, benchmark).metrics
    draw.shuffle(rows)
    after = run_of(rows, benchmark).metrics
    for one, other in zip(before.sort(KEY).iter_rows(), after.sort(KEY).iter_rows(), strict=True):
        assert other == tuple(pytest.approx(value) if isinstance(value, float) else value for value in one)
