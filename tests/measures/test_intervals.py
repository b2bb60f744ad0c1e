"""Intervals against formulas of their own: mid-P, Korn and Graubard, Bonett and Price, and coverage of made data."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.bootstrap import Sums, sums_of
from pluralbench_measures.intervals import FEWEST, tilt
from pluralbench_measures.kappa import cohens_kappa
from scipy.optimize import brentq
from scipy.stats import binom, t
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of

COVERAGE = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


def single(right: int, size: int) -> Sums:
    won = (np.arange(size) < right).astype(np.float64)
    return sums_of(np.zeros(size, dtype=np.int64), np.arange(size), won)


def bounds(right: int, size: int) -> tuple[float, float]:
    tilted = tilt(single(right, size))
    found = tilted.share(tilted.sources[0].pooled([0]), [[0]], size, size)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@pytest.mark.parametrize(("right", "size"), [(2, 7), (9, 20), (80, 100), (290, 300)])
def test_a_share_of_single_decisions_has_the_mid_p_interval(right: int, size: int) -> None:
    def above(share: float) -> float:
        return float(binom.sf(right, size, share) + binom.pmf(right, size, share) / 2)

    expected = [brentq(lambda share, tail=tail: above(share) - tail, 1e-9, 1 - 1e-9) for tail in (0.025, 0.975)]
    # A decision, half right and half wrong, enters the variance, which few decisions notice.
    assert bounds(right, size) == pytest.approx(expected, abs=0.35 / size)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("size", [3, 4, 5, 7, 10, 20, 50, 200])
def test_a_share_of_single_decisions_is_covered_as_often_as_it_says(size: int, share: float) -> None:
    """Exact, by going through all that can come out: only what comes in few ways is covered more often."""
    rights = [place for place in range(size + 1) if binom.pmf(place, size, share) > 1e-6]
    held = sum(binom.pmf(k, size, share) for k in rights if bounds(k, size)[0] <= share <= bounds(k, size)[1])
    assert held >= 0.925
    assert held <= 0.98 or size < 30


def test_clusters_that_are_all_or_nothing_are_decisions_and_independent_ones_count_as_many() -> None:
    generator = np.random.default_rng(0)
    whole = (generator.random(200) < 0.7).astype(np.float64)
    width = {}
    for name, won in (("alike", 5 * whole), ("apart", generator.binomial(5, 0.7, 200).astype(np.float64))):
        tilted = tilt(Sums(won[:, None], np.full((200, 1), 5.0)))
        found = tilted.share(tilted.sources[0].pooled([0]), [[0]], 1000, 200)
        width[name] = (found.high or 0) - (found.low or 0)
    assert width["alike"] == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 200), rel=0.06)
    assert width["apart"] == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 1000), rel=0.12)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 40))
def test_a_difference_has_bonetts_and_prices_interval(first: int, second: int, both: int) -> None:
    size = first + second + both
    ours = [1.0] * first + [0.0] * second + [1.0] * both
    theirs = [0.0] * first + [1.0] * second + [1.0] * both
    leaf, cluster = np.zeros(size, dtype=np.int64), np.arange(size)
    tilted = tilt(*(sums_of(leaf, cluster, np.array(won)) for won in (ours, theirs)))
    one, other = (source.pooled([0]) for source in tilted.sources)
    found = tilted.difference(other - one, [[0]], size, size)
    if size < FEWEST:
        assert found.low is None
        return
    moved = np.array(theirs) - np.array(ours)
    variance = (size / (size - 1) * ((moved - moved.mean()) ** 2).sum() + 2) / (size + 2) ** 2
    half = t.ppf(0.975, size + 1) * np.sqrt(variance)
    expected = max(-1.0, moved.mean() - half), min(1.0, moved.mean() + half)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-4)


def test_kappa_has_the_asymptotic_interval_where_items_are_many() -> None:
    generator = np.random.default_rng(1)
    first = generator.choice(["win", "loss", "tie"], 600, p=[0.6, 0.3, 0.1])
    second = np.where(generator.random(600) < 0.6, first, generator.choice(["win", "loss", "tie"], 600))
    labels = sorted(set(first))
    table = np.array([[((first == one) & (second == other)).sum() for other in labels] for one in labels])
    expected, found = kappa_of(table), cohens_kappa(first.tolist(), second.tolist())
    assert found.value == pytest.approx(expected.kappa)
    assert (found.low, found.high) == pytest.approx((expected.kappa_low, expected.kappa_upp), abs=0.002)
    twice = cohens_kappa([*first, *first], [*second, *second], [*map(str, range(600))] * 2)
    assert (twice.low, twice.high) == pytest.approx((found.low, found.high), abs=1e-3), "an item twice says no more"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program that draws the figure in the documents."""
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", COVERAGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.mark.heavy
@pytest.mark.parametrize("design", ["one to four a cluster", "sections of three", "difference of two models"])
@pytest.mark.parametrize("clusters", [3, 5, 10, 30, 100, 500])
def test_intervals_hold_the_truth_as_often_as_they_say(program: ModuleType, design: str, clusters: int) -> None:
    draws = 150
    held, printed = np.sum(
        [program.coverage(design, clusters, share, draws, program.AFTER) for share in program.SHARES], axis=0
    )
    assert printed == 3 * draws
    assert held / printed >= 0.93
    # Few clusters come out in few ways, so that their intervals hold the truth more often.
    assert held / printed <= (0.975 if clusters >= 100 else 1.0)


@pytest.mark.heavy
def test_percentiles_of_a_bootstrap_hold_it_less_often(program: ModuleType) -> None:
    for design in ("one to four a cluster", "sections of three", "difference of two models"):
        held, printed = program.coverage(design, 5, 0.9, 150, program.BEFORE)
        assert held / printed < 0.85
