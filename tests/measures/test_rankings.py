"""How well rewards keep rankings, by hand and by laws that any measure of it has to obey."""

import random
from math import exp
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.calibration import BINS, bins_of
from pluralbench_measures.errors import MeasuresError
from pluralbench_measures.rankings import pairs_of, ranking_metrics

Prompt = tuple[str, str, list[int], list[float | None]]
NAN = float("nan")
GOLDEN: list[Prompt] = [
    ("open", "推理", [1, 2, 3], [3, 2, 1]),
    ("open", "推理", [1, 2, 3], [3, 1, 2]),
    ("open", "其他", [1, 1, 2], [5, 4, 4]),
    ("open", "其他", [1, 1], [0, 7]),
    ("human", "理解", [2, 1], [0, 1]),
]


def frame(prompts: list[Prompt]) -> pl.DataFrame:
    types = pl.Schema([("config", pl.String), ("category", pl.String), ("rank", pl.List(pl.Int64))])
    types["reward"] = pl.List(pl.Float64)
    rows = [
        (config, category, rank, [None if r is None else float(r) for r in rewards])
        for config, category, rank, rewards in prompts
    ]
    return pl.DataFrame(rows, schema=types, orient="row")


def measured(prompts: list[Prompt], *, legacy: bool = False) -> dict[str, Any]:
    return ranking_metrics(frame(prompts), legacy=legacy)


def sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value))


@pytest.mark.smoke
def test_shares_are_pooled_in_a_category_and_categories_and_subsets_weigh_alike() -> None:
    found = measured(GOLDEN)
    reasoning, others = found["configs"]["open"]["categories"].values()
    assert reasoning == {
        "accuracy": pytest.approx(5 / 6), "exact_match": 0.5, "pairs": 6, "prompts": 2, "without_pair": 0,
    }  # fmt: skip
    assert others == {"accuracy": 0.5, "exact_match": 0.0, "pairs": 2, "prompts": 1, "without_pair": 1}
    subset = {name: value for name, value in found["configs"]["open"].items() if name != "categories"}
    shares = {"accuracy": pytest.approx((5 / 6 + 1 / 2) / 2), "exact_match": 0.25}
    assert subset == shares | {"pairs": 8, "prompts": 3, "without_pair": 1}
    assert (found["accuracy"], found["exact_match"]) == (pytest.approx((2 / 3 + 1) / 2), pytest.approx((1 / 4 + 1) / 2))
    assert found["overall"] == pytest.approx(((2 / 3 + 1 / 4) / 2 + 1) / 2)


def test_by_the_legacy_rules_no_tie_breaks_an_exact_match_and_no_pair_is_one() -> None:
    strict, legacy = measured(GOLDEN), measured(GOLDEN, legacy=True)
    others = legacy["configs"]["open"]["categories"]["其他"]
    assert (others["exact_match"], others["prompts"]) == (1.0, 2)
    assert legacy["configs"]["open"]["exact_match"] == pytest.approx((1 / 2 + 1) / 2)
    assert legacy["overall"] == pytest.approx(((2 / 3 + 3 / 4) / 2 + 1) / 2)
    assert legacy["accuracy"] == strict["accuracy"]


def test_the_calibration_error_is_of_five_bins_and_the_largest_difference_is_in_the_last() -> None:
    # Differences of 0 (a tie), six times 1 (five right), and twice 2, both right.
    gaps = {0: (1, abs(0 - sigmoid(0))), 1: (6, abs(5 / 6 - sigmoid(1))), 2: (2, abs(1 - sigmoid(2)))}
    assert measured(GOLDEN)["calibration_error"] == pytest.approx(sum(n * gap for n, gap in gaps.values()) / 9)
    del gaps[2]
    legacy = measured(GOLDEN, legacy=True)["calibration_error"]
    assert legacy == pytest.approx(sum(n * gap for n, gap in gaps.values()) / 7)


def test_a_bin_holds_its_lower_edge() -> None:
    differences = np.array([0.0, 0.99, 1.0, 2.5, 4.0, 4.99, 5.0])
    assert bins_of(differences).tolist() == [0, 0, 1, 2, 4, 4, 4]
    assert bins_of(differences, legacy=True).tolist() == [0, 0, 1, 2, 4, 4, -1]
    assert bins_of(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("reward", [NAN, float("inf"), None])
def test_what_is_no_number_is_wrong_by_both_rules_and_has_no_difference(reward: float | None) -> None:
    for legacy in (False, True):
        found = measured([("open", "a", [1, 2, 2], [2, 1, reward]), ("open", "a", [1, 2], [3, 1])], legacy=legacy)
        cell = found["configs"]["open"]
        assert (cell["accuracy"], cell["exact_match"]) == (pytest.approx(2 / 3), 0.5)
        gaps = [1 - sigmoid(1), 1 - sigmoid(2)]
        assert found["calibration_error"] == pytest.approx(gaps[0] if legacy else sum(gaps) / 2)


def test_a_constant_scorer_gets_nothing_and_the_legacy_rules_give_it_every_exact_match() -> None:
    prompts: list[Prompt] = [(c, k, rank, [1.5] * len(rank)) for c, k, rank, _ in GOLDEN]
    strict, legacy = measured(prompts), measured(prompts, legacy=True)
    assert (strict["accuracy"], strict["exact_match"], strict["overall"]) == (0.0, 0.0, 0.0)
    assert (legacy["accuracy"], legacy["exact_match"], legacy["overall"]) == (0.0, 1.0, 0.5)
    assert (strict["calibration_error"], legacy["calibration_error"]) == (0.5, None)


def test_what_cannot_be_said_is_none() -> None:
    assert measured([]) == {
        "overall": None, "accuracy": None, "exact_match": None, "calibration_error": None, "configs": {},
    }  # fmt: skip
    tied = measured([("open", "a", [1, 1], [1, 2]), ("human", "b", [1, 2], [2, 1])])
    assert (tied["overall"], tied["accuracy"], tied["exact_match"]) == (None, None, None)
    assert tied["configs"]["open"]["categories"]["a"]["without_pair"] == 1
    assert tied["configs"]["human"]["accuracy"] == 1.0


def test_ranks_and_rewards_that_do_not_match_are_refused() -> None:
    with pytest.raises(MeasuresError) as caught:
        measured([GOLDEN[0], ("open", "a", [1, 2, 3], [1, 2])])
    assert str(caught.value) == "The prompt in row 2 has 3 ranks and 2 rewards."


@st.composite
def prompts(draw: st.DrawFn) -> list[Prompt]:
    made: list[Prompt] = []
    for _ in range(draw(st.integers(1, 8))):
        rank = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
        rewards: list[float | None] = [float(draw(st.integers(-3, 3))) for _ in rank]
        made.append((draw(st.sampled_from(["open", "human"])), draw(st.sampled_from("abc")), rank, rewards))
    return made


def close(found: Any, expected: Any) -> None:
    """Whether two results are equal up to rounding, whatever the order of configs and categories."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            close(found[name], value)
    else:
        assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@given(prompts(), st.booleans(), st.integers(0, 10**6))
def test_the_order_of_responses_and_prompts_changes_nothing(given_: list[Prompt], legacy: bool, seed: int) -> None:
    draw = random.Random(seed)
    shuffled: list[Prompt] = []
    for config, category, rank, rewards in given_:
        both = draw.sample(list(zip(rank, rewards, strict=True)), len(rank))
        shuffled.append((config, category, [r for r, _ in both], [value for _, value in both]))
    draw.shuffle(shuffled)
    close(measured(shuffled, legacy=legacy), measured(given_, legacy=legacy))


@given(prompts())
def test_the_strict_rules_never_give_more_than_the_legacy_ones(given_: list[Prompt]) -> None:
    strict, legacy = measured(given_), measured(given_, legacy=True)
    for name, cell in strict["configs"].items():
        close(legacy["configs"][name]["accuracy"], cell["accuracy"])
        if cell["exact_match"] is not None:
            assert cell["exact_match"] <= legacy["configs"][name]["exact_match"] + 1e-12
    if strict["overall"] is not None:
        assert strict["overall"] <= legacy["overall"] + 1e-12


def test_a_category_of_ties_alone_is_left_out_of_the_mean() -> None:
    found = measured([("open", "a", [1, 1], [1, 2]), ("open", "b", [1, 2], [1, 2]), ("open", "c", [1, 2], [2, 1])])
    assert (found["accuracy"], found["exact_match"]) == (0.5, 0.5)


@given(prompts(), st.booleans())
def test_a_scorer_that_knows_the_ranks_is_perfect(given_: list[Prompt], legacy: bool) -> None:
    found = measured([(c, k, rank, [-float(r) for r in rank]) for c, k, rank, _ in given_], legacy=legacy)
    for cell in found["configs"].values():
        assert cell["accuracy"] in {1.0, None}
        assert cell["exact_match"] in {1.0, None}
        assert (cell["accuracy"] is None) == (cell["pairs"] == 0)


@given(prompts(), st.booleans())
def test_only_the_order_of_rewards_matters_but_for_the_calibration(given_: list[Prompt], legacy: bool) -> None:
    stretched: list[Prompt] = [(c, k, rank, [exp(value or 0) for value in own]) for c, k, rank, own in given_]
    found, expected = measured(stretched, legacy=legacy), measured(given_, legacy=legacy)
    close({**found, "calibration_error": None}, {**expected, "calibration_error": None})


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_bins_are_in_order_and_leave_out_the_largest_alone(values: list[float]) -> None:
    differences = np.array(sorted(values))
    strict, legacy = bins_of(differences), bins_of(differences, legacy=True)
    assert strict.tolist() == sorted(strict.tolist())
    assert 0 <= strict.min() <= strict.max() == BINS - 1
    assert (legacy == -1).tolist() == (differences == differences[-1]).tolist()
    assert (strict[legacy >= 0] == legacy[legacy >= 0]).all()


@given(st.lists(st.integers(1, 4), max_size=6))
def test_pairs_are_all_places_of_unlike_rank_the_better_first(rank: list[int]) -> None:
    found = pairs_of(rank)
    assert all(rank[better] < rank[worse] for better, worse in found)
    assert len(set(found)) == len(found) == sum(a < b for a in rank for b in rank)
