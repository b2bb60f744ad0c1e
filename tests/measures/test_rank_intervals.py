"""Intervals, differences and power of rank correlations, and a simulated world whose truth they have to cover."""

from math import asin, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures import rank_intervals
from pluralbench_measures.bootstrap import Array, Sums, resample
from pluralbench_measures.correlation import NAMES, rank_statistics
from pluralbench_measures.rank_intervals import (
    differences,
    interval,
    interval_from_null,
    min_models,
    models_to_detect,
    models_to_distinguish,
    reliability,
    statistic_distributions,
)
from scipy.stats import rankdata, spearmanr

SIX = np.arange(6.0)


def bounds(name: str, value: float, models: int, kept: float = 1.0) -> tuple[float, float]:
    found = interval(name, value, models, kept)
    assert found.value == value
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@given(st.permutations(range(6)), st.sampled_from(["ndcg", "weighted_tau", "spearman", "kendall_tau_b"]))
def test_an_interval_is_around_its_value_and_rises_with_it(order: list[int], name: str) -> None:
    value = float(rank_statistics(SIX, np.array(order, dtype=float))[name][0])
    best = float(rank_statistics(SIX, SIX)[name][0])
    low, high = bounds(name, value, 6)
    # An average over draws is below what most draws have, where a statistic is as skewed as NDCG near 1.
    assert low - 1e-3 <= value <= high + 1e-3
    most = bounds(name, best, 6)
    assert low <= most[0]
    assert high <= most[1] == pytest.approx(1)


def test_an_interval_of_spearman_is_near_fishers() -> None:
    low, high = bounds("spearman", 0.5, 30)
    spread = 1.96 * np.sqrt((1 + 0.5**2 / 2) / 27)  # Bonett and Wright 2000
    assert (low, high) == pytest.approx(tuple(np.tanh(np.arctanh(0.5) + np.array([-1, 1]) * spread)), abs=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_too_few_models_have_no_interval(name: str) -> None:
    least = min_models(name)
    assert interval(name, 0.5, least - 1).low is None
    assert interval(name, 0.5, least).low is not None


def test_noise_of_the_items_widens_an_interval_and_moves_it_away_from_zero() -> None:
    plain, noisy = bounds("spearman", 0.6, 20), bounds("spearman", 0.6, 20, 0.7)
    assert noisy[0] > plain[0] > 0
    assert noisy[1] > plain[1]
    assert (
        interval_from_null("spearman", 0.6, 20, reliability_product=0.7)
        > interval_from_null("spearman", 0.6, 20)
        == pytest.approx(0.6, abs=0.03)
    )
    assert bounds("spearman", 0.9, 20, 0.5)[1] == 1
    assert interval("spearman", 0.6, 20, 0.0).low is None


def test_the_reliability_is_the_share_of_the_variance_that_is_not_noise() -> None:
    draw = np.random.default_rng(0)
    scores = draw.normal(size=400)
    common = draw.normal(size=(3000, 1)) * 9
    resampled = np.concatenate([scores[None], scores + common + draw.normal(size=(3000, 400)) * 0.5])
    assert reliability(resampled) == pytest.approx(1 - 0.25 / scores.var(ddof=1), abs=0.01)
    assert reliability(np.zeros((5, 3))) == 0


def test_a_benchmark_does_not_differ_from_itself() -> None:
    draw = np.random.default_rng(1)
    first, downstream = draw.normal(size=(2, 12))
    for one in differences(first, np.exp(first), downstream).values():
        assert one.value == 0
        assert one.p_value == 1
        assert (one.low or 0) < 1e-9
        assert (one.high or 0) > -1e-9


def test_few_models_exchange_in_every_way() -> None:
    first, second, downstream = np.array([[1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [1, 2, 3, 5, 4]], dtype=float)
    ranks = [rankdata(side) for side in (first, second)]
    gaps = []
    for number in range(2**5):
        swapped = np.array([number >> model & 1 for model in range(5)], dtype=bool)
        sides = np.where(swapped, ranks[1], ranks[0]), np.where(swapped, ranks[0], ranks[1])
        gaps.append(np.subtract(*(spearmanr(side, downstream).statistic for side in sides)))
    found = differences(first, second, downstream)["spearman"]
    assert found.value == pytest.approx(gaps[0])
    assert found.p_value == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9))
    assert found.low is None, "five models are too few"


def test_what_is_undefined_on_a_side_has_no_difference() -> None:
    found = differences(np.ones(6), SIX, SIX)
    assert found["spearman"].value is found["spearman"].p_value is None
    assert found["ndcg"].value is not None


def test_power_by_known_numbers() -> None:
    # Fisher's z: ((1.6449 + 0.8416) / atanh 0.5)^2 * 1.06 + 3 = 24.7.
    assert models_to_detect(0.5) == 25
    assert models_to_detect(0.0) is models_to_detect(-0.3) is None
    assert models_to_distinguish(0.4, 0.4, 0.5) is None
    assert models_to_distinguish(0.7, 0.3, 0.5) == models_to_distinguish(0.3, 0.7, 0.5)
    apart = [models_to_distinguish(0.7, other, 0.5) or 0 for other in (0.1, 0.3, 0.5, 0.6)]
    assert apart == sorted(apart)
    assert (models_to_detect(1.0) or 0) < 6


def world(draw: np.random.Generator, models: int, strength: float, items: int) -> tuple[Array, Array]:
    """Scores of a benchmark on items drawn anew, [1 + resamples, models], and the downstream result.

    Each model has a quality on the benchmark and one downstream, of a Gaussian copula. An item has a difficulty, and
    each model gets it right by chance, the more likely the better it is.
    """
    quality, other = draw.standard_normal((2, models))
    downstream = strength * quality + np.sqrt(1 - strength**2) * other
    chance = 1 / (1 + np.exp(draw.standard_normal((items, 1)) - 0.5 - 0.4 * quality))
    right = (draw.random((items, models)) < chance).astype(np.float64)
    [drawn] = resample([Sums(right, np.ones_like(right))], int(draw.integers(2**32)))
    return drawn.won / drawn.counts, downstream


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("models", "items", "worlds"), [(6, None, 500), (26, None, 300), (6, 100, 300)])
def test_intervals_cover_the_truth_as_often_as_they_say(
    models: int, items: int | None, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A world needs its reliability alone, which is no nearer with more of them.
    monkeypatch.setattr("pluralbench_measures.bootstrap.RESAMPLES", 400)
    strength = 0.6
    draw = np.random.default_rng([models, items or 0])
    truth = {name: statistic_distributions(models, 1).expected(name, strength) for name in NAMES}
    assert truth["spearman"] == pytest.approx(6 / pi * asin(0.3))
    covered: dict[str, list[bool]] = {name: [] for name in NAMES}
    guesses = []
    for _ in range(worlds):
        if items is None:
            benchmark, downstream = draw.multivariate_normal([0, 0], [[1, strength], [strength, 1]], models).T
            kept = 1.0
        else:
            resampled, downstream = world(draw, models, strength, items)
            benchmark, kept = resampled[0], reliability(resampled)
        for name, values in rank_statistics(benchmark, downstream).items():
            found = interval(name, float(values[0]), models, kept)
            if found.low is not None and found.high is not None:
                covered[name].append(found.low - 1e-9 <= truth[name] <= found.high + 1e-9)
                if name == "spearman":
                    guesses.append(interval_from_null(name, float(values[0]), models, reliability_product=kept))
    for name, ones in covered.items():
        if models >= min_models(name):
            assert len(ones) > 0.9 * worlds, "nearly every world has an interval"
            # Of six models a rank statistic takes few values, so with much noise the interval is a little too wide.
            most = 0.975 if models == 6 and items else 0.97
            assert 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / worlds) <= np.mean(ones) <= most, (name, np.mean(ones))
    # Six models have values a step of 0.057 apart, so the median may jump by one.
    assert np.median(guesses) == pytest.approx(truth["spearman"], abs=1.5 * 0.057)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_differences_of_two_benchmarks_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    models, between = 10, np.array([[1, 0.4, 0.8], [0.4, 1, 0.3], [0.8, 0.3, 1]])
    draw = np.random.default_rng(3)
    drawn, _ = statistic_distributions(models, 1), statistic_distributions(models)
    # The exchanges are for p-values alone, and fewer draws are enough for the correlation of two statistics.
    monkeypatch.setattr(rank_intervals, "exchanges", lambda models, _: iter([np.ones((2, models))]))
    monkeypatch.setattr(rank_intervals, "RESAMPLES", 400)
    truth = {name: drawn.expected(name, 0.8) - drawn.expected(name, 0.3) for name in NAMES}
    covered: dict[str, list[bool]] = {name: [] for name in NAMES}
    for _ in range(120):
        first, second, downstream = draw.multivariate_normal([0, 0, 0], between, models).T
        for name, one in differences(first, second, downstream).items():
            assert one.low is not None
            assert one.high is not None
            covered[name].append(one.low <= truth[name] <= one.high)
    for name, ones in covered.items():
        assert 0.92 <= np.mean(ones) <= 0.98, (name, np.mean(ones))


def test_an_interval_excludes_no_association_when_the_permutation_test_does() -> None:
    drawn = statistic_distributions(12).at(33)["spearman"]
    assert statistic_distributions(12).expected("spearman", 0.0) == 0
    edge = float(np.quantile(drawn, 0.975))
    assert bounds("spearman", edge + 0.1, 12)[0] > 0 > bounds("spearman", edge - 0.1, 12)[0]


def test_the_other_way_round_is_the_same_difference_with_the_other_sign() -> None:
    draw = np.random.default_rng(2)
    downstream = draw.normal(size=12)
    first, second = downstream + 0.5 * draw.normal(size=12), downstream + 2 * draw.normal(size=12)
    there, back = differences(first, second, downstream), differences(second, first, downstream)
    for name in NAMES:
        one, other = there[name], back[name]
        assert one.value == pytest.approx(-(other.value or 0))
        assert one.p_value == pytest.approx(other.p_value)
        assert one.low is not None
        assert other.high is not None
        assert one.low == pytest.approx(-other.high, abs=0.05), "but for which side was drawn first"
