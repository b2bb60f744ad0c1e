"""The mean of independent estimates and its interval."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.independent import RECOVERED, independent_mean

SHARES = st.floats(0, 1)
ESTIMATES = st.lists(st.tuples(SHARES, SHARES, SHARES).map(sorted), min_size=2, max_size=6).map(
    lambda rows: [Estimate(value, low, high, 10, 4) for low, value, high in rows]
)
WEIGHTS = st.floats(0.01, 100)


def test_bounds_by_hand() -> None:
    one, other = Estimate(0.8, 0.74, 0.83, 100, 90, "effective"), Estimate(0.6, 0.52, 0.64, 50, 50, "effective")
    mean = independent_mean([one, other])
    assert mean.value == pytest.approx(0.7)
    assert mean.low == pytest.approx(0.7 - math.hypot(0.06, 0.08) / 2)  # 0.65
    assert mean.high == pytest.approx(0.7 + math.hypot(0.03, 0.04) / 2)  # 0.725
    assert (mean.n, mean.clusters, mean.method) == (150, 140, RECOVERED)
    weighted = independent_mean([one, other], [3, 1])
    assert weighted.value == pytest.approx(0.75)
    assert weighted.low == pytest.approx(0.75 - math.hypot(3 * 0.06, 0.08) / 4)


@given(ESTIMATES, st.data())
def test_the_mean_of_shares_is_a_share_within_its_interval(estimates: list[Estimate], data: st.DataObject) -> None:
    weights = data.draw(st.lists(WEIGHTS, min_size=len(estimates), max_size=len(estimates)))
    mean = independent_mean(estimates, weights)
    assert mean.value is not None
    assert mean.low is not None
    assert mean.high is not None
    assert -1e-9 <= mean.low <= mean.value <= mean.high <= 1 + 1e-9
    again = independent_mean(estimates[::-1], [5 * weight for weight in weights[::-1]])
    assert (again.value, again.low, again.high) == pytest.approx((mean.value, mean.low, mean.high))


@given(ESTIMATES)
def test_estimates_of_the_same_data_are_no_more_certain_than_one(estimates: list[Estimate]) -> None:
    one, *others = estimates
    five = independent_mean([one] * 5, data=["same"] * 5)
    assert [five.value, five.low, five.high] == pytest.approx([one.value, one.low, one.high])
    assert (five.n, five.clusters, five.method) == (one.n, one.clusters, one.method)
    weights = [3.0, *[1.0] * len(others)]
    again = independent_mean([one] * 3 + others, [1.0] * (3 + len(others)), [0, 0, 0, *range(1, len(others) + 1)])
    once = independent_mean(estimates, weights)
    assert [again.value, again.low, again.high] == pytest.approx([once.value, once.low, once.high])
    assert (again.n, again.clusters) == (once.n, once.clusters)


def test_a_missing_value_or_bound_is_not_made_up() -> None:
    whole = Estimate(0.5, 0.4, 0.6, 10, 10, "effective")
    assert independent_mean([]) == Estimate(None)
    assert independent_mean([whole]) is whole
    assert independent_mean([whole, Estimate(None)]) == Estimate(None)
    assert independent_mean([whole, Estimate(0.7, n=3, clusters=2)]) == Estimate(0.6, n=13, clusters=12)
    assert independent_mean([whole, Estimate(0.7, 0.6, 0.8)]).n is None


def test_the_interval_covers_the_mean_of_shares() -> None:
    draw, covered, tries = random.Random(0), 0, 2000
    shares, sizes = (0.9, 0.7, 0.6, 0.95), (200, 100, 50, 400)
    for _ in range(tries):
        estimates = []
        for share, size in zip(shares, sizes, strict=True):
            value = sum(draw.random() < share for _ in range(size)) / size
            estimates.append(Estimate(value, *wilson(value, size), size, size))
        mean = independent_mean(estimates)
        assert mean.low is not None
        assert mean.high is not None
        covered += mean.low <= sum(shares) / 4 <= mean.high
    assert 0.935 <= covered / tries <= 0.965


def wilson(value: float, size: int) -> tuple[float, float]:
    z = 1.959964
    center = (value + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * math.sqrt(value * (1 - value) / size + z**2 / (4 * size**2))
    return center - half, center + half
