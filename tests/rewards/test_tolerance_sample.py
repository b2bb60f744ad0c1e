"""Which groups a tolerance is measured on: it costs little, or is about the closest decisions of a small run."""

import math

from hypothesis import given
from hypothesis import strategies as st
from pluralbench_rewards import Scored, tolerance_sample

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
    assert tolerance_sample(Scored([])) == tolerance_sample(Scored([[1.0]])) == []
