"""Which candidate is best: of the first k, and in expectation over every set of k, against plain counting."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pluralbench.metrics.best_of_n import best_of_first, expected_value, weights_of_best

Array = NDArray[np.float64]

# Few numbers, so that there are ties, and NaN where a candidate has no reward.
few = st.sampled_from([0.0, -1.5, 2.0, 7.25, math.nan])
rewards_of = st.lists(few | st.floats(-1e9, 1e9), min_size=1, max_size=8).map(np.array)
valid_rewards = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8).map(np.array)


def counted(rewards: Array, k: int) -> list[float]:
    """The chance of each candidate to be taken, by going through all sets of k of those that have a reward."""
    there = [place for place, reward in enumerate(rewards) if not math.isnan(reward)]
    chances = [0.0] * len(rewards)
    sets = list(combinations(there, min(k, len(there)))) if there else []
    for drawn in sets:
        most = max(rewards[place] for place in drawn)
        best = [place for place in drawn if rewards[place] == most]
        for place in best:
            chances[place] += 1 / len(best) / len(sets)
    return chances


@given(rewards_of, st.integers(1, 9))
def test_the_weights_are_those_of_counting_every_set(rewards: Array, k: int) -> None:
    weights = weights_of_best(rewards, k)
    assert weights.tolist() == pytest.approx(counted(rewards, k))
    nothing = np.isnan(rewards)
    assert (weights[nothing] == 0).all(), "what has no reward is never selected"
    assert weights.sum() == pytest.approx(0.0 if nothing.all() else 1.0)


@given(valid_rewards, st.data())
def test_the_expectation_is_the_mean_over_every_set(rewards: Array, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(rewards)))
    order = np.argsort(rewards, kind="stable")
    distinct = np.empty(len(rewards))
    distinct[order] = np.arange(len(rewards))  # without ties, so that each set has one best
    values = np.array(data.draw(st.lists(st.floats(0, 2), min_size=len(rewards), max_size=len(rewards))))
    taken = [values[max(drawn, key=lambda place: distinct[place])] for drawn in combinations(range(len(rewards)), k)]
    assert expected_value(values, weights_of_best(distinct, k)) == pytest.approx(sum(taken) / len(taken))


@given(rewards_of, st.integers(1, 9))
def test_of_the_first_k_the_earliest_of_the_highest_is_taken(rewards: Array, k: int) -> None:
    there = [(reward, -place) for place, reward in enumerate(rewards.tolist()[:k]) if not math.isnan(reward)]
    assert best_of_first(rewards, k) == (-max(there)[1] if there else None)


def test_a_value_that_is_missing_is_left_out() -> None:
    weights = weights_of_best(np.array([1.0, 2.0, 3.0]), 2)
    assert weights.tolist() == pytest.approx([0.0, 1 / 3, 2 / 3])
    assert expected_value(np.array([9.0, math.nan, 1.0]), weights) == 1.0
    assert math.isnan(expected_value(np.array([9.0, math.nan, math.nan]), weights))
    assert math.isnan(expected_value(np.array([9.0, 1.0]), weights_of_best(np.array([math.nan] * 2), 1)))


@given(valid_rewards)
def test_one_of_one_is_any_and_one_of_all_is_the_best(rewards: Array) -> None:
    count = len(rewards)
    assert weights_of_best(rewards, 1).tolist() == pytest.approx([1 / count] * count)
    assert expected_value(rewards, weights_of_best(rewards, count)) == pytest.approx(rewards.max())
    best = (rewards == rewards.max()).astype(float)
    assert weights_of_best(rewards, count).tolist() == pytest.approx(best / best.sum())


def test_the_number_of_subsets_may_be_above_the_largest_float() -> None:
    weights = weights_of_best(np.arange(1100.0), 550)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[-1] == pytest.approx(1 / 2)


@given(valid_rewards)
def test_the_expected_reward_never_falls_with_k(rewards: Array) -> None:
    curve = [expected_value(rewards, weights_of_best(rewards, k)) for k in range(1, len(rewards) + 1)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(curve))
