"""Tests of differences: exchanges against a plain loop, p from an interval, Holm's rule by hand, Cohen's kappa."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.agreement import cohens_kappa
from pluralbench_measures.bootstrap import Estimate, Sums
from pluralbench_measures.intervals import linearize
from pluralbench_measures.paired import exchanges, holm, interval_p_value, p_value
from scipy.stats import binomtest, t
from statsmodels.stats.multitest import multipletests

LABELS = ("win", "loss", "tie")


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_few_clusters_are_exchanged_in_every_way(differences: list[int]) -> None:
    found = np.concatenate([signs @ np.array(differences, np.float64) for signs in exchanges(len(differences), 0)])
    ways = [
        sum(one * sign for one, sign in zip(differences, signs, strict=True))
        for signs in product([1, -1], repeat=len(differences))
    ]
    assert found[0] == sum(differences)
    assert sorted(found[1:]) == sorted(ways)
    assert p_value(found) == pytest.approx(sum(abs(way) >= abs(ways[0]) for way in ways) / len(ways))


def test_many_clusters_are_exchanged_at_random_and_agree_with_the_sign_test() -> None:
    differences = np.array([-1.0] * 12 + [1.0] * 30 + [0.0] * 18)
    found = np.concatenate([signs @ differences for signs in exchanges(60, 3)])
    assert found[0] == found[1] == 18
    assert p_value(found) == pytest.approx(binomtest(30, 42).pvalue, abs=0.01)


def paired_difference(decisions: list[tuple[bool, bool]]) -> Estimate:
    """The difference of two accuracies, one decision per cluster."""
    counts = np.ones((len(decisions), 1))
    linearized = linearize(*(Sums(np.array([[float(pair[side])] for pair in decisions]), counts) for side in (0, 1)))
    first, second = (source.pooled([0]) for source in linearized.sources)
    return linearized.difference(second - first, [[0]], None, len(decisions))


def test_p_is_that_of_students_t_at_the_standard_error_of_the_interval() -> None:
    assert interval_p_value(Estimate(0.2, 0.2 - 0.1 * t.ppf(0.975, 19), 0.9, None, 20)) == pytest.approx(
        2 * t.sf(2, 19)
    )
    assert interval_p_value(Estimate(0.0, -0.3, 0.3, None, 20)) == 1.0
    assert interval_p_value(Estimate(0.2, None, None, None, 20)) is None


def test_p_of_no_difference_is_below_five_percent_about_one_time_in_twenty() -> None:
    """Of 500 pairs of models that are equally good; the share has a standard error of one percent."""
    draw = np.random.default_rng(0)
    for clusters in (10, 30):
        decisions = draw.random((500, clusters, 2)) < 0.6
        ps = [interval_p_value(paired_difference([(a, b) for a, b in one])) for one in decisions.tolist()]
        assert 0.01 <= np.mean([p is not None and p < 0.05 for p in ps]) <= 0.08


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
