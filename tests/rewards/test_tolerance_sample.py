"""Which groups a tolerance is measured on: it costs little, or is about the closest decisions of a small run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_rewards import Group, Scored, tolerance_sample
from pluralbench_rewards.errors import RewardsError
from pluralbench_rewards.tolerance import check_spread

SIZES = st.lists(st.integers(1, 4000), min_size=1, max_size=400)


@given(SIZES)
def test_a_sample_costs_a_twentieth_of_the_tokens_or_is_skipped(sizes: list[int]) -> None:
    scored = Scored([[0.0, 1.0]] * len(sizes), tokens=[[size, 1] for size in sizes])
    sample = tolerance_sample(scored)
    assert sample == sorted(set(sample))
    assert 20 * sum(sizes[index] for index in sample) <= sum(sizes)
    assert len(sample) in {0, *range(4, 17)}


def test_a_sample_is_spread_over_the_groups_with_scores() -> None:
    scored = Scored([[], *([[0.0, 1.0]] * 400)])
    assert tolerance_sample(scored) == [1 + 25 * part for part in range(16)]
    assert len(tolerance_sample(Scored([[0.0, 1.0]] * 100))) == 5


def test_a_small_run_is_measured_on_its_closest_decisions_if_one_is_close() -> None:
    scores = [[float(place), -float(place)] for place in range(1, 25)]
    scores[10] = [math.nan, 7.0]
    assert tolerance_sample(Scored(scores)) == []
    scores[20], scores[5] = [3.0, 3.01], [3.0, 3.3]
    assert tolerance_sample(Scored(scores)) == [20, 5, 0, 1]
    scores[20] = []
    assert tolerance_sample(Scored(scores))[:1] == [5], "0.3 is close among scores of this size"
    in_steps = [Group("q", [], ["a", "a\n\nb"], steps=["a", "b"])] * len(scores)
    assert tolerance_sample(Scored(scores), in_steps) == []
    assert tolerance_sample(Scored([])) == tolerance_sample(Scored([[1.0]])) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=2), st.floats(0, 1e7))
def test_scores_that_spread_less_than_their_tolerance_are_no_measurement(values: list[float], tolerance: float) -> None:
    scored = Scored([[value, math.nan] for value in values])
    spread = max(values) - min(values)
    if 0 < spread < tolerance:
        with pytest.raises(RewardsError, match="differ by more than they spread"):
            check_spread(scored, tolerance)
    else:
        assert check_spread(scored, tolerance) == tolerance  # scores that all tie are counted as ties
