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
from pluralbench import Benchmark, find_benchmark
from pluralbench.decisions import DECISIONS, OUTCOMES, decide
from pluralbench.items import ITEMS
from pluralbench.metrics import measure

Row = dict[str, Any]
NAN = float("nan")


def decision(number: int, outcome: str = "win", **changes: Any) -> Row:
    row: Row = {"config": "c", "id": f"q{number}", "cluster": f"q{number}", "subset": None, "truncated": False}
    row |= {"chosen": "chosen", "rejected": "rejected", "outcome": outcome}
    row["margin"] = {"win": 1.0, "loss": -2.0, "tie": 0.0}.get(outcome)
    return row | changes


def measured(rows: Sequence[Row], benchmark: str | Benchmark = "pairs", seed: int = 0) -> dict[str, Any]:
    described = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    return measure(described, pl.DataFrame(rows, schema=DECISIONS), seed=seed)


def test_accuracy_is_strict_and_everything_else_is_counted() -> None:
    outcomes = ["win"] * 5 + ["loss"] * 3 + ["tie"] * 2 + ["invalid"] * 2 + ["dropped"] * 4 + ["equal"] * 3
    cell = measured([decision(number, outcome) for number, outcome in enumerate(outcomes)])["pooled"]
    assert [cell[name] for name in ("wins", "losses", "ties", "invalid", "dropped", "equal")] == [5, 3, 2, 2, 4, 3]
    assert (cell["n"], cell["accuracy"]) == (12, pytest.approx(5 / 12)), "ties and invalid ones are wrong, not half"
    assert cell["accuracy_of_valid"] == pytest.approx(5 / 10)
    assert cell["ids"]["invalid"] == ["q10", "q11"]
    assert cell["ids"]["dropped"] == ["q12", "q13", "q14", "q15"]


def test_the_overall_number_is_by_the_benchmarks_rule() -> None:
    rows = [decision(n, config="small") for n in range(2)] + [decision(n, "loss", config="large") for n in range(8)]
    assert measured(rows)["overall"]["accuracy"] == pytest.approx(0.2)
    assert measured(rows, "personalized")["overall"]["accuracy"] == pytest.approx(0.5)
    assert measured(rows, "personalized")["pooled"]["accuracy"] == pytest.approx(0.2)
    assert "unweighted mean of the configs" in measured(rows, "personalized")["overall"]["rule"]


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


def test_mathematics_weighs_as_much_as_all_code_whatever_the_rows() -> None:
    rows = rewardbench({"math-prm": 0.2, "hep-go": 0.5})
    sections = measured(rows, "reward-bench")["configs"]["default"]["sections"]
    assert sections["Reasoning"]["accuracy"] == pytest.approx((984 * 0.2 + 164 * 0.5 + 164 * 5) / (2 * 984))
    assert sections["Chat"]["accuracy"] == 1.0


def test_a_section_weighs_its_subsets_by_their_counts_and_the_overall_weighs_sections_alike() -> None:
    metrics = measured(rewardbench({"xstest-should-respond": 0.4, "mt-bench-hard": 0.0}), "reward-bench")
    expected = {"Chat": 1.0, "Chat Hard": 1 - 37 / 456, "Safety": 1 - 250 * 0.6 / 740, "Reasoning": 1.0}
    found = {name: cell["accuracy"] for name, cell in metrics["configs"]["default"]["sections"].items()}
    assert found == pytest.approx(expected)
    assert metrics["overall"]["accuracy"] == pytest.approx(fmean(expected.values()))


def test_a_subset_that_no_section_has_is_told() -> None:
    rows = [*rewardbench({}), decision(1, subset="new", config="default"), decision(2, subset=None, config="default")]
    cell = measured(rows, "reward-bench")["configs"]["default"]
    assert cell["subsets_in_no_section"] == ["new"]
    assert cell["subsets"]["new"]["n"] == 1


def test_a_run_in_which_nothing_counts_has_counts_and_no_accuracy() -> None:
    for benchmark in ("pairs", "personalized", "reward-bench", "chinese"):
        metrics = measured([decision(1, "dropped"), decision(2, "equal")], benchmark)
        assert (metrics["overall"]["accuracy"], metrics["overall"]["interval"]) == (None, None)
        assert (metrics["pooled"]["n"], metrics["pooled"]["dropped"], metrics["pooled"]["equal"]) == (0, 1, 1)


def test_a_config_in_which_nothing_counts_makes_the_mean_of_configs_missing() -> None:
    metrics = measured([decision(1), decision(2, "dropped", config="d")], "personalized")
    assert metrics["overall"]["accuracy"] is None
    assert metrics["configs"]["c"]["accuracy"] == 1.0


def test_what_was_truncated_is_counted_by_item_also_where_configs_share_ids() -> None:
    rows = [decision(n, truncated=n < 2, config=config) for config in ("fr", "zh") for n in range(4)]
    metrics = measured(rows, "multilingual")
    assert [metrics["configs"][config]["truncated"] for config in ("fr", "zh")] == [2, 2]
    assert metrics["pooled"]["truncated"] == 4


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
    assert found["outcome"].to_list() == (expected or ["equal"])
    if expected:
        metrics = measured(found.to_dicts(), "chinese")
        assert metrics["pooled"]["accuracy"] == pytest.approx(expected.count("win") / len(expected))
        assert metrics["configs"]["open"]["exact_match"]["accuracy"] == float(set(expected) == {"win"})


def test_exact_match_is_broken_by_a_tie_and_by_a_missing_score() -> None:
    frames = [
        ranking([3, 2, 1], [1, 2, 3], 0),
        ranking([3, 2, 2], [1, 2, 3], 1),
        ranking([3, NAN, 1], [1, 2, 3], 2),
        ranking([3, 3, 1], [1, 1, 3], 3, category="b"),
        ranking([1, 1], [1, 1], 4, category="b"),
    ]
    cell = measured(pl.concat(frames).to_dicts(), "chinese")["configs"]["open"]
    assert cell["exact_match"] | {"interval": None} == {"accuracy": 0.5, "interval": None, "prompts": 4}
    assert cell["exact_match_by_category"]["accuracy"] == pytest.approx((1 / 3 + 1) / 2)
    assert cell["by_category"]["accuracy"] == pytest.approx((6 / 9 + 1) / 2)


@pytest.mark.parametrize("values", [(NAN, 1.0), (1.0, NAN), (math.inf, math.inf), (-math.inf, 1.0), (math.inf, 0.0)])
def test_scores_that_are_no_numbers_decide_nothing(values: tuple[float, float]) -> None:
    assert ranking(values, [1, 2])["outcome"].to_list() == ["invalid"]
    assert ranking([], [1, 2])["outcome"].to_list() == ["dropped"]


@settings(max_examples=20)
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
    before = measured(rows, benchmark)
    draw.shuffle(rows)
    after = measured(rows, benchmark)
    assert before.keys() == after.keys()
    assert flat(after) == {
        key: pytest.approx(value) if isinstance(value, float) else value for key, value in flat(before).items()
    }


def flat(value: object, path: str = "") -> dict[str, object]:
    """Metrics by their path, without lists of ids, which are in the order of the rows."""
    if isinstance(value, dict):
        parts = [flat(own, f"{path}/{key}") for key, own in value.items() if key != "ids"]
        return {key: own for part in parts for key, own in part.items()}
    if isinstance(value, list) and path.endswith("interval"):
        return {f"{path}/{number}": own for number, own in enumerate(value)}
    return {path: value}
