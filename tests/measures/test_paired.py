"""Paired tests: exchanges within clusters against a plain loop, Holm's rule by hand, and Cohen's kappa by the book."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.bootstrap import Sums
from pluralbench_measures.kappa import cohens_kappa
from pluralbench_measures.paired import exchange, holm, p_value
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

LABELS = ("win", "loss", "tie")
small = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(3, 5)), min_size=1, max_size=6)


def sums(won: list[list[float]], counts: list[list[float]]) -> Sums:
    return Sums(np.array(won, dtype=np.float64), np.array(counts, dtype=np.float64))


@given(small)
def test_few_clusters_are_exchanged_in_every_way(clusters: list[tuple[int, int, int]]) -> None:
    counts = [[float(n)] for *_, n in clusters]
    first = sums([[float(a)] for a, _, _ in clusters], counts)
    second = sums([[float(b)] for _, b, _ in clusters], counts)
    ours, theirs = exchange(first, second, 0)
    differences = theirs.pooled([0]) - ours.pooled([0])
    total = sum(n for *_, n in clusters)
    ways = [
        sum((b - a) * sign for (a, b, _), sign in zip(clusters, signs, strict=True)) / total
        for signs in product([1, -1], repeat=len(clusters))
    ]
    assert sorted(differences[1:]) == pytest.approx(sorted(ways))
    as_large = sum(abs(way) >= abs(ways[0]) - 1e-12 for way in ways)
    assert p_value(differences) == pytest.approx(as_large / len(ways))


def test_many_clusters_are_exchanged_at_random_and_agree_with_the_sign_test() -> None:
    won = [[float(n < 12)] for n in range(60)]
    other = [[float(12 <= n < 42)] for n in range(60)]
    ours, theirs = exchange(sums(won, [[1.0]] * 60), sums(other, [[1.0]] * 60), 3)
    differences = theirs.pooled([0]) - ours.pooled([0])
    assert differences[0] == differences[1] == pytest.approx(18 / 60)
    assert p_value(differences) == pytest.approx(binomtest(30, 42).pvalue, abs=0.01)
    again = exchange(sums(won, [[1.0]] * 60), sums(other, [[1.0]] * 60), 3)[0]
    assert np.array_equal(again.won, ours.won)


def test_the_leaves_of_a_cluster_are_exchanged_together() -> None:
    first, second = sums([[1, 0], [1, 0]], [[1, 1], [1, 1]]), sums([[0, 1], [0, 1]], [[1, 1], [1, 1]])
    ours, _ = exchange(first, second, 0)
    assert ours.won.sum(1).tolist() == [2.0] * 5, "what one leaf loses, the other gains"


def test_a_difference_that_is_missing_has_no_p_value() -> None:
    assert p_value(np.array([np.nan, 0.0])) is None


def test_holms_rule_by_hand_and_as_statsmodels_has_it() -> None:
    drawn = np.random.default_rng(0).random(40) ** 3
    assert holm(drawn.tolist()) == multipletests(drawn, method="holm")[1].tolist()
    assert holm([0.01, 0.04, None, 0.03]) == [pytest.approx(0.03), pytest.approx(0.06), None, pytest.approx(0.06)]
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([None]) == [None]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=60))
def test_kappa_is_agreement_beyond_chance(pairs: list[tuple[str, str]]) -> None:
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    chance = sum(first.count(label) * second.count(label) for label in LABELS) / len(pairs) ** 2
    found = cohens_kappa(first, second)
    assert found.n == len(pairs)
    if chance == 1:
        assert (found.value, found.low, found.high) == (None, None, None)
    else:
        assert found.value == pytest.approx((agreed - chance) / (1 - chance))
        assert found.low is None or found.low <= found.value + 1e-9  # type: ignore[operator]
