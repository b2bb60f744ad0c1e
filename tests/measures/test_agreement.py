"""Shares with their intervals, and Krippendorff's alpha: by hand, and where there is nothing to measure."""

import math

import krippendorff
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.agreement import clustered_share, krippendorff_alpha, share_of
from scipy.stats import binomtest


@pytest.mark.parametrize(("count", "of"), [(0, 5), (2, 6), (5, 5), (183, 200)])
def test_wilsons_interval(count: int, of: int) -> None:
    z, share = 1.959963984540054, count / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    found = share_of(count, of)
    assert (found["count"], found["of"], found["share"]) == (count, of, share)
    assert found["low"] == pytest.approx((middle - half) / (1 + z * z / of), abs=1e-12)
    assert found["high"] == pytest.approx((middle + half) / (1 + z * z / of), abs=1e-12)


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_wilsons_interval_is_scipys_to_the_bit(counts: tuple[int, int]) -> None:
    interval = binomtest(*counts).proportion_ci(method="wilson")
    found = share_of(*counts)
    assert (found["low"], found["high"]) == (interval.low, interval.high)


def test_the_interval_of_a_share_draws_whole_clusters() -> None:
    together = clustered_share([10, 0] * 20, [10] * 40)
    apart = clustered_share([5] * 20 + [4, 6] * 10, [10] * 40)
    assert together["share"] == apart["share"] == 0.5
    # Forty draws of all or nothing: half a width of 1.96 * 0.5 / sqrt(40), which is 0.155.
    assert together["low"] == pytest.approx(0.345, abs=0.03)
    assert together["high"] == pytest.approx(0.655, abs=0.03)
    # Clusters that hang together less than by chance count as 400 draws at most: 1.96 * 0.5 / sqrt(400) is 0.049.
    assert apart["low"] == pytest.approx(0.451, abs=0.005)
    assert clustered_share([10, 0] * 20, [10] * 40) == together
    assert clustered_share([3], [4]) == {"share": 0.75, "low": None, "high": None}  # one cluster has no spread
    alike = clustered_share([4, 4, 4], [4, 4, 4])
    assert alike["low"] == pytest.approx(
        0.05 ** (1 / 3), abs=0.04
    )  # three clusters that came out alike: half of p^3 is 2.5 %
    assert alike["high"] == 1


def test_alpha_is_what_krippendorff_has() -> None:
    # Units by how often each of three values was given: (1, 1), (-1, -1), (0, 0), (1, -1), and one answer alone.
    found = krippendorff_alpha([(0, 0, 2), (2, 0, 0), (0, 2, 0), (1, 0, 1), (1, 0, 0)])
    # 2 of 8 values differ; n(1) = 3, n(-1) = 3, n(0) = 2, so 42 of 56 ordered pairs differ by chance.
    assert found["nominal"] == pytest.approx(1 - (2 / 8) / (42 / 56))
    # Squared distances: 2 * 4 seen; by chance 2 * 3 * 3 * 4 between ends, 2 * (3 + 3) * 2 * 1 to the middle.
    assert found["interval"] == pytest.approx(1 - (8 / 8) / ((72 + 24) / 56))
    # Neighbours are 3/2 + 2/2 values apart and the ends 3/2 + 2 + 3/2, twice as far: even steps.
    assert found["ordinal"] == pytest.approx(found["interval"])


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=12))
def test_alpha_is_what_the_library_of_that_name_gives(counts: list[list[int]]) -> None:
    found = krippendorff_alpha(counts)
    if found["nominal"] is None:
        return
    for level, value in found.items():
        library = krippendorff.alpha(value_counts=counts, value_domain=[0, 1, 2], level_of_measurement=level)
        assert value == pytest.approx(library, abs=1e-12)


@pytest.mark.parametrize("counts", [[], [(1, 0)], [(2, 0), (3, 0)], [(1, 0), (0, 1)]])
def test_alpha_is_not_defined_where_nothing_could_differ(counts: list[tuple[int, ...]]) -> None:
    assert krippendorff_alpha(counts) == {"nominal": None, "ordinal": None, "interval": None}
