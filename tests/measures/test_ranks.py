"""Ranks from differences: who cannot be told apart shares one, and who can does not."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.paired import RankInterval, interval_p_value, ranks

VALUES = st.lists(st.integers(0, 12).map(float), min_size=2, max_size=6)


def differences(values: list[float], half: float) -> dict[tuple[int, int], Estimate]:
    return {
        (one, other): Estimate(difference, difference - half, difference + half, clusters=500)
        for one, other in combinations(range(len(values)), 2)
        for difference in (values[other] - values[one],)
    }


@given(values=VALUES)
@settings(max_examples=25)
def test_small_intervals_rank_by_value_and_wide_ones_tell_nobody_apart(values: list[float]) -> None:
    alike = [RankInterval(1, len(values))] * len(values)
    assert ranks(len(values), differences(values, 100)) == ranks(len(values), {}) == alike
    for value, rank in zip(values, ranks(len(values), differences(values, 0.01)), strict=True):
        assert rank.best == 1 + sum(other > value for other in values)
        assert rank.worst == sum(other >= value for other in values)


@given(values=VALUES, half=st.floats(0.01, 20))
@settings(max_examples=25)
def test_ranks_are_ranges_that_turn_round_with_the_values(values: list[float], half: float) -> None:
    found = ranks(len(values), differences(values, half))
    turned = ranks(len(values), differences([-value for value in values], half))
    assert all(1 <= rank.best <= rank.worst <= len(values) for rank in found)
    assert turned == [RankInterval(len(values) + 1 - rank.worst, len(values) + 1 - rank.best) for rank in found]


@given(value=st.floats(-1, 1), below=st.floats(0.01, 1), above=st.floats(0.01, 1), clusters=st.integers(2, 1000))
@settings(max_examples=25)
def test_a_difference_is_beyond_chance_where_its_interval_leaves_out_zero(
    value: float, below: float, above: float, clusters: int
) -> None:
    p = interval_p_value(Estimate(value, value - below, value + above, clusters=clusters))
    nearer = abs(value) - (below if value > 0 else above)
    assert p is not None
    assert 0 <= p <= 1
    if abs(nearer) > 1e-9:
        assert (p < 0.05) == (nearer > 0)


def test_many_pairs_ask_for_more() -> None:
    # Two models, two standard errors apart: beyond chance by themselves, and not among forty-five pairs.
    just = Estimate(2.1, 0.1, 4.1, clusters=1000)
    assert ranks(2, {(0, 1): just}) == [RankInterval(2, 2), RankInterval(1, 1)]
    none = Estimate(0.0, -2.0, 2.0, clusters=1000)
    many = dict.fromkeys(combinations(range(10), 2), none) | {(0, 1): just}
    assert ranks(10, many) == [RankInterval(1, 10)] * 10


def test_what_has_no_interval_is_not_told_apart() -> None:
    assert interval_p_value(Estimate(0.5)) is None
    assert ranks(2, {(0, 1): Estimate(0.5)}) == [RankInterval(1, 2)] * 2
