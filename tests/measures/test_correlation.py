"""Rank statistics and permutation tests, against the paper's table and plain loops over all orders."""

from collections.abc import Iterator, Sequence
from itertools import groupby, permutations, product
from math import exp, log2
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.correlation import NAMES, permutation_test, rank_statistics
from pluralbench_measures.errors import MeasuresError
from scipy.stats import kendalltau, spearmanr, weightedtau

# Personalized RewardBench, Tables 2 and 5: Skywork 1B, 3B, 8B, InternLM2 1.8B, 7B, 20B.
ACCURACIES = [
    (62.06, 70.78, 67.88),
    (60.89, 70.37, 69.18),
    (66.62, 67.04, 71.88),
    (48.50, 58.95, 55.77),
    (65.97, 71.69, 74.95),
    (63.23, 67.34, 67.13),
]
BEST_OF_N = [0.1904, 0.1895, 0.1871, 0.2193, 0.2261, 0.1793]
PPO = [0.1653, 0.0933, 0.1419, 0.3287, 0.3332, 0.0768]
BENCHMARK = [fmean(row) for row in ACCURACIES]
PAPER = ("ndcg", "rbo", "weighted_tau", "spearman")

scores = st.integers(2, 5).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


def found(benchmark: Sequence[float], downstream: Sequence[float]) -> dict[str, float]:
    values = rank_statistics(np.array(benchmark, dtype=float), np.array(downstream, dtype=float))
    return {name: float(value[0]) for name, value in values.items()}


@pytest.mark.parametrize(
    ("downstream", "problem"),
    [(BEST_OF_N, (0.9180, 0.5732, 0.3409, 0.2571)), (PPO, (0.9265, 0.5732, 0.4793, 0.3714))],
    ids=["best of n", "ppo"],
)
def test_the_rows_of_the_papers_table_3(downstream: list[float], problem: tuple[float, ...]) -> None:
    values = found(BENCHMARK, downstream)
    assert tuple(round(values[name], 4) for name in PAPER) == problem


def by_list(first: Sequence[int], second: Sequence[int]) -> dict[str, float]:
    """The formulas on two lists of models, the best first, as plain loops."""
    n, place = len(first), {model: number for number, model in enumerate(second)}
    ideal = sum((2 ** (n - i) - 1) / log2(i + 2) for i in range(n))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    weights = [1 / (i + j + 2) for i, j in pairs]
    signs = [1 if place[first[i]] < place[first[j]] else -1 for i, j in pairs]
    overlap = [len(set(first[:depth]) & set(second[:depth])) / depth for depth in range(1, n + 1)]
    rbo = 0.2 * sum(0.8 ** (depth - 1) * share for depth, share in enumerate(overlap, start=1))
    return {
        "ndcg": sum((2 ** (n - place[model]) - 1) / log2(i + 2) for i, model in enumerate(first)) / ideal,
        "rbo": rbo,
        "weighted_tau": sum(w * s for w, s in zip(weights, signs, strict=True)) / sum(weights),
        "rbo_extrapolated": rbo + 0.8**n * overlap[-1],
    }


def lists(values: Sequence[float]) -> Iterator[list[int]]:
    """Every order of the models that the scores leave open, the best first."""
    ordered = sorted(range(len(values)), key=lambda model: -values[model])
    groups = [list(group) for _, group in groupby(ordered, key=lambda model: values[model])]
    for chosen in product(*(permutations(group) for group in groups)):
        yield [model for group in chosen for model in group]


@given(scores)
def test_with_ties_the_formulas_on_lists_are_the_mean_over_all_orders(sides: tuple[list[int], list[int]]) -> None:
    every = [by_list(one, other) for one in lists(sides[0]) for other in lists(sides[1])]
    values = found(*sides)
    for name in every[0]:
        assert values[name] == pytest.approx(fmean(one[name] for one in every)), name


@given(scores)
def test_the_standard_forms_are_those_of_scipy(sides: tuple[list[int], list[int]]) -> None:
    values = found(*sides)
    if min(len(set(side)) for side in sides) == 1:
        assert all(np.isnan(values[name]) for name in ("spearman", "kendall_tau_b", "scipy_weightedtau"))
        return
    for name, measure in (("spearman", spearmanr), ("kendall_tau_b", kendalltau), ("scipy_weightedtau", weightedtau)):
        assert values[name] == pytest.approx(measure(*sides).statistic, abs=1e-12), name


@pytest.mark.parametrize("n", [2, 3, 6, 26])
def test_equal_and_reversed_rankings(n: int) -> None:
    rising = list(range(n))
    same, other = found(rising, rising), found(rising, rising[::-1])
    assert same.pop("rbo") == pytest.approx(1 - 0.8**n)
    assert list(same.values()) == pytest.approx([1] * 6)
    for name in ("weighted_tau", "spearman", "kendall_tau_b", "scipy_weightedtau"):
        assert other[name] == pytest.approx(-1), name
    assert all(other[name] < same[name] for name in ("ndcg", "rbo_extrapolated"))


def test_many_rows_at_once_are_the_rows_one_by_one() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.integers(0, 9, (2, 40, 300)).astype(float)
    together = rank_statistics(first, second)
    alone = [found(one, other) for one, other in zip(first.tolist(), second.tolist(), strict=True)]
    for name in NAMES:
        assert together[name] == pytest.approx([one[name] for one in alone])


@given(scores)
def test_a_p_value_is_the_share_of_all_orders_that_agree_as_well(sides: tuple[list[int], list[int]]) -> None:
    observed = found(*sides)
    test = permutation_test(np.array(sides[0]), np.array(sides[1]), 0)
    every = rank_statistics(np.array(sides[0]), np.array(list(permutations(sides[1]))))
    assert (test.exact, test.orders) == (True, len(every["ndcg"]))
    for name in NAMES:
        if np.isnan(observed[name]):
            assert test.p_values[name] is None
        else:
            assert test.p_values[name] == pytest.approx(fmean(every[name] >= observed[name] - 1e-9))


@pytest.mark.heavy
def test_nine_models_have_all_their_orders_and_ten_have_some_of_them() -> None:
    nine = permutation_test(np.arange(9.0), np.arange(9.0), 0)
    assert (nine.exact, nine.orders) == (True, 362_880)
    assert nine.p_values["spearman"] == pytest.approx(1 / 362_880)
    ten = permutation_test(np.arange(10.0), np.arange(10.0), 0)
    assert (ten.exact, ten.orders) == (False, 9999)
    assert ten.p_values["spearman"] == pytest.approx(1 / 10_000), "never 0"


def test_sampled_p_values_are_near_those_of_scipy_and_a_matter_of_the_seed() -> None:
    draw = np.random.default_rng(5)
    first = draw.normal(size=26)
    second = 0.5 * first + draw.normal(size=26)
    test = permutation_test(first, second, 1)
    for name, measure in (("spearman", spearmanr), ("kendall_tau_b", kendalltau)):
        assert test.p_values[name] == pytest.approx(measure(first, second, alternative="greater").pvalue, abs=0.02)
    assert permutation_test(first, second, 1) == test != permutation_test(first, second, 2)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1.0], [1.0], "A correlation needs at least two models."),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "The two rankings have different numbers of models: 2 and 3."),
        ([1.0, float("nan")], [1.0, 2.0], "The scores contain a value that is not a finite number."),
    ],
)
def test_what_has_no_correlation_is_refused(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(MeasuresError) as refused:
        rank_statistics(np.array(first), np.array(second))
    assert str(refused.value) == message


@given(scores, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_an_increasing_transform_matters(
    sides: tuple[list[int], list[int]], draw: Random
) -> None:
    rows = list(zip(*sides, strict=True))
    draw.shuffle(rows)
    moved = found([exp(x) - 7 for x, _ in rows], [y**3 / 10 for _, y in rows])
    assert moved == pytest.approx(found(*sides), nan_ok=True)


@given(scores)
def test_what_knows_no_sides_is_the_same_the_other_way_round(sides: tuple[list[int], list[int]]) -> None:
    there, back = found(*sides), found(sides[1], sides[0])
    for name in ("rbo", "spearman", "rbo_extrapolated", "scipy_weightedtau", "kendall_tau_b"):
        assert there[name] == pytest.approx(back[name], nan_ok=True), name


def test_ndcg_and_the_weighted_tau_know_which_side_is_the_benchmark() -> None:
    there, back = found(BENCHMARK, PPO), found(PPO, BENCHMARK)
    assert there["ndcg"] != pytest.approx(back["ndcg"], abs=0.001)
    assert there["weighted_tau"] != pytest.approx(back["weighted_tau"], abs=0.001)


@given(seed=st.integers(0, 10_000), models=st.integers(2, 12))
def test_the_order_of_the_models_changes_no_digit(seed: int, models: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 8, (2, models)) / 7
    order = rng.permutation(models)
    assert str(found(first[order], second[order])) == str(found(first, second))  # NaN is not equal to itself
