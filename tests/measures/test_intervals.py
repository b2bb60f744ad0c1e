"""Intervals against formulas of their own: mid-P, Korn and Graubard, a test inverted, and coverage of made data."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pluralbench_measures.agreement import cohens_kappa
from pluralbench_measures.bootstrap import Sums, sums_of
from pluralbench_measures.intervals import MIN_CLUSTERS, linearize
from scipy.optimize import brentq
from scipy.stats import binom, multinomial, t
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of

COVERAGE = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


def single(right: int, size: int) -> Sums:
    won = (np.arange(size) < right).astype(np.float64)
    return sums_of(np.zeros(size, dtype=np.int64), np.arange(size), won)


def bounds(right: int, size: int) -> tuple[float, float]:
    tilted = linearize(single(right, size))
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


@pytest.mark.parametrize(
    "marks", [np.arange(9) / 8, np.array([0, 0.5, 1])], ids=["a share of eight pairs", "two votes"]
)
@pytest.mark.parametrize("right", [0.5, 0.7, 0.9])
def test_a_mean_of_credits_is_covered_as_often_as_it_says_by_an_interval_of_students_width(
    marks: np.ndarray, right: float
) -> None:
    """Against Student's interval of the mean, by scipy, on the same draws."""
    generator, draws, size = np.random.default_rng(3), 200, 200
    pairs = len(marks) - 1
    drawn = marks[generator.binomial(pairs, right, (draws, size))]
    held, widths, students = 0, [], []
    for sample in drawn:
        tilted = linearize(sums_of(np.zeros(size, dtype=np.int64), np.arange(size), sample))
        found = tilted.share(tilted.sources[0].pooled([0]), [[0]], size, size)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= right <= found.high
        widths.append(found.high - found.low)
        low, high = t.interval(0.95, size - 1, sample.mean(), sample.std(ddof=1) / size**0.5)
        students.append(high - low)
    assert 0.92 <= held / draws <= 0.99
    assert np.mean(widths) == pytest.approx(np.mean(students), rel=0.1)


def test_decisions_have_one_interval_whether_they_are_summed_by_cluster_before_or_not() -> None:
    generator = np.random.default_rng(4)
    cluster, won = np.repeat(np.arange(8), 3), (generator.random(24) < 0.6).astype(np.float64)
    by_cluster = won.reshape(8, 3).sum(1)
    cell = np.zeros(24, dtype=np.int64)
    bounds_of = []
    for sums in (sums_of(cell, cluster, won), sums_of(cell[:8], np.arange(8), by_cluster, np.full(8, 3.0))):
        tilted = linearize(sums)
        found = tilted.share(tilted.sources[0].pooled([0]), [[0]], 24, 8)
        bounds_of.append((found.low, found.high))
    assert bounds_of[0] == bounds_of[1]


def test_strata_drawn_in_fixed_numbers_make_the_interval_narrower() -> None:
    """Two halves of 100 decisions, 90 and 10 % right: their mean is far surer than a coin's 200 throws."""
    cell, cluster = np.repeat([0, 1], 100), np.arange(200)
    won = (np.arange(100) < np.array([[90], [10]])).reshape(-1).astype(np.float64)
    tilted = linearize(sums_of(cell, cluster, won))
    mean = tilted.sources[0].weighted([0, 1], [1.0, 1.0])
    widths = {}
    for stratified in (False, True):
        found = tilted.share(mean, [[0], [1]], 200, 200, stratified=stratified)
        widths[stratified] = (found.high or 0) - (found.low or 0)
    assert widths[False] == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 200), rel=0.03)
    assert widths[True] == pytest.approx(2 * 1.96 * np.sqrt(0.09 / 200), rel=0.03)


def apart(first: int, second: int, size: int) -> tuple[float, float]:
    """The interval of a difference where the one is right alone, the other is, and both are right in the rest."""
    ours = np.arange(size) >= second
    theirs = (np.arange(size) < second) | (np.arange(size) >= first + second)
    cell, cluster = np.zeros(size, dtype=np.int64), np.arange(size)
    tilted = linearize(*(sums_of(cell, cluster, won.astype(np.float64)) for won in (ours, theirs)))
    one, other = (source.pooled([0]) for source in tilted.sources)
    found = tilted.difference(other - one, [[0]], size, size)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 40))
def test_a_difference_lies_among_all_that_are_not_too_far_from_it(first: int, second: int, both: int) -> None:
    size = first + second + both
    assume(size >= MIN_CLUSTERS)
    moved = np.repeat([-1.0, 1.0, 0.0], [first, second, both])
    pulls = np.abs(moved - moved.mean()) / size
    unit = (pulls**3).sum() / (pulls**2).sum() if pulls.any() else 1 / size
    variance = size / (size - 1) * (pulls**2).sum() + unit**2
    every = np.linspace(-1, 1, 200_001)
    allowed = np.maximum(variance, np.abs(every) * unit - every**2 / size)
    near = every[(every - moved.mean()) ** 2 <= t.ppf(0.975, size) ** 2 * allowed]
    assert apart(first, second, size) == pytest.approx((near[0], near[-1]), abs=3e-5)


@pytest.mark.parametrize(("first", "second"), [(0.05, 0.05), (0.25, 0.25), (0.4, 0.4), (0.1, 0.3), (0, 0.1), (0, 0.3)])
@pytest.mark.parametrize("size", [7, 10, 15, 20, 30])
def test_a_difference_is_covered_as_often_as_it_says(size: int, first: float, second: float) -> None:
    """Exact, by going through all that can come out: only where few differ is it covered more often."""
    ways = [(one, other) for one in range(size + 1) for other in range(size + 1 - one)]
    chance = multinomial(size, [first, second, 1 - first - second])
    likely = [(way, p) for way in ways if (p := chance.pmf([*way, size - sum(way)])) > 1e-5]
    intervals = [(apart(*way, size), p) for way, p in likely]
    held = sum(p for (low, high), p in intervals if low - 1e-9 <= second - first <= high + 1e-9)
    assert held >= 0.93
    assert held <= 0.97 or size * (first + second) < 10


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


# Few clusters come out in few ways, and of differences only those that differ count.
MOST = {10: 0.985, 100: 0.975}


@pytest.mark.heavy
@pytest.mark.parametrize(
    "design",
    ["one to four per cluster", "sections of three", "difference of two models", "of two similar models"],
)
@pytest.mark.parametrize("clusters", [3, *MOST])
def test_intervals_hold_the_truth_as_often_as_they_say(program: ModuleType, design: str, clusters: int) -> None:
    draws = 200  # for each share, so that the least is 2.2 standard errors below 0.95
    held, printed = np.sum(
        [program.coverage(design, clusters, share, draws, program.AFTER) for share in program.SHARES], axis=0
    )
    assert printed == 3 * draws
    assert held / printed >= 0.93
    few_differ = design in {"difference of two models", "of two similar models"} and clusters < 30
    assert few_differ or held / printed <= MOST.get(clusters, 1.0)


@pytest.mark.heavy
def test_a_difference_that_lies_in_small_sections_holds_though_only_the_large_one_shows_it(program: ModuleType) -> None:
    """Nine sections of three clusters and one of 73: where only one model is ever right alone, most is not seen."""
    generator, held = np.random.default_rng(0), 0
    section = np.minimum(np.arange(100) // 3, 9)
    each = (section[:, None] == np.arange(10)).astype(np.float64)
    for _ in range(400):
        first = generator.random(100) < 0.7
        second = first | (generator.random(100) < 0.1)
        tables = [Sums(won[:, None] * each, each) for won in (first, second)]
        found = program.METHODS[program.AFTER](program.Drawn(tables, [[place] for place in range(10)], 0.03), 100)
        held += found.low <= 0.03 <= found.high
    assert held / 400 >= 0.93


def test_clusters_that_are_all_or_nothing_are_decisions_and_independent_ones_count_as_many() -> None:
    generator = np.random.default_rng(0)
    whole = (generator.random(200) < 0.7).astype(np.float64)
    width = {}
    for name, won in (("alike", 5 * whole), ("apart", generator.binomial(5, 0.7, 200).astype(np.float64))):
        tilted = linearize(Sums(won[:, None], np.full((200, 1), 5.0)))
        found = tilted.share(tilted.sources[0].pooled([0]), [[0]], 1000, 200)
        width[name] = (found.high or 0) - (found.low or 0)
    assert width["alike"] == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 200), rel=0.06)
    assert width["apart"] == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 1000), rel=0.12)


@pytest.mark.heavy
def test_percentiles_of_a_bootstrap_hold_it_less_often(program: ModuleType) -> None:
    for design in ("one to four per cluster", "sections of three"):
        held, printed = program.coverage(design, 5, 0.9, 150, program.BEFORE)
        assert held / printed < 0.85
