"""Confidence intervals of rank correlations over models and items, differences between benchmarks, and power.

A percentile bootstrap over models fails: models drawn twice are ties, and six models have few different draws. Models
are therefore drawn from a Gaussian copula, whose correlation r is the only parameter (it does not change under
increasing transforms of the scores). The interval contains every r under which the observed value is in neither 2.5 %
tail, with ties counting half (test-inversion bootstrap: Carpenter 1999, J. R. Stat. Soc. B 61:159; mid-P: Lancaster
1961, J. Am. Stat. Assoc. 56:223). At r = 0 all orders are equally likely, as in the permutation test. Bounds are
reported as the expected value of the statistic at r: for Spearman and tau-b its value in the population
(6/pi asin(r/2) and 2/pi asin r; Kruskal 1958, J. Am. Stat. Assoc. 53:814), for the other statistics, which depend on
the number of models, the mean over draws of that number of models.

If resamples of the items are available, the noise of the items is removed. It attenuates a correlation by the square
root of the product of both reliabilities (Spearman 1904, Am. J. Psychol. 15:72), so the bounds of r are divided by it
(Hunter and Schmidt 2004, Methods of Meta-Analysis, ch. 3). The interval is then that of an unlimited number of items.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import asin, atanh, ceil, pi, sqrt
from statistics import NormalDist

import numpy as np

from pluralbench_measures.bootstrap import CONFIDENCE, RESAMPLES, Array, Estimate
from pluralbench_measures.correlation import NAMES, rank_statistics
from pluralbench_measures.paired import ROUNDING, exchanges, p_value

# With fewer models a statistic has so few values that its intervals do not reach their coverage.
MIN_MODELS = 6
MIN_MODELS_RBO = 8
MIN_MODELS_DIFFERENCE = 10
POWER = 0.8
TAIL = (1 - CONFIDENCE) / 2
NEARLY_ONE = 0.99  # the largest correlation that a power analysis assumes
_GRID = [-1.0, *np.tanh(np.linspace(-3.2, 3.2, 65)).tolist(), 1.0]


@dataclass(frozen=True)
class Difference:
    """The difference of two benchmarks in how well they predict, by one statistic.

    Attributes:
        value: Value of the first benchmark minus that of the second; None if one is undefined.
        low: Lower bound of the difference, without the noise of the items if that is known; None without an interval.
        high: Upper bound of the difference.
        p_value: Two-sided p-value of no difference; None if the value is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None


class StatisticDistributions:
    """Distributions of the statistics over draws of models from Gaussian copulas, on a grid of correlations.

    All correlations share their draws. Each distribution is computed at its first use.
    """

    def __init__(self, models: int, seed: int = 0) -> None:
        generator = np.random.default_rng([seed, models])
        first, self._other = generator.standard_normal((2, RESAMPLES, models))
        self._first = -np.sort(-first, axis=1)
        self._order = np.arange(models, 0, -1.0)
        self._cache: dict[int, dict[str, Array]] = {}

    def at(self, index: int) -> dict[str, Array]:
        """Return the resampled values of each statistic at a point of the grid. Shape (resamples,)."""
        if index not in self._cache:
            correlation = _GRID[index]
            second = correlation * self._first + sqrt(1 - correlation**2) * self._other
            self._cache[index] = rank_statistics(self._order, second)
        return self._cache[index]

    def correlation(self, name: str, value: float, above: float) -> float:
        """Return the copula's correlation at which larger values, with half the ties, have a probability."""
        index = bisect_left(
            range(len(_GRID)), above, lo=1, hi=len(_GRID) - 1, key=lambda n: self._above(name, value, n)
        )
        probabilities = [self._above(name, value, n) for n in (index - 1, index)]
        return float(np.interp(above, probabilities, _GRID[index - 1 : index + 1]))

    def expected(self, name: str, correlation: float) -> float:
        """Return the expected value of the statistic at a correlation of the copula."""
        if name == "spearman":
            return 6 / pi * asin(correlation / 2)
        if name == "kendall_tau_b":
            return 2 / pi * asin(correlation)
        index = bisect_left(_GRID, correlation, lo=1, hi=len(_GRID) - 1)
        means = [float(self.at(n)[name].mean()) for n in (index - 1, index)]
        return float(np.interp(correlation, _GRID[index - 1 : index + 1], means))

    def _above(self, name: str, value: float, index: int) -> float:
        values = self.at(index)[name]
        above = np.count_nonzero(values > value + ROUNDING)
        equal = np.count_nonzero(np.abs(values - value) <= ROUNDING)
        return above / len(values) + equal / len(values) / 2


@lru_cache(maxsize=16)
def statistic_distributions(models: int, seed: int = 0) -> StatisticDistributions:
    """Return the cached `StatisticDistributions` for a number of models."""
    return StatisticDistributions(models, seed)


def reliability(resampled: Array) -> float:
    """Compute the share of the variance between models that is not noise of the items.

    A change that all models share is not noise, because it changes no rank. `resampled` has the scores of the models on
    the data, then on resampled items, the same ones for all models. Shape (1 + resamples, models).

    Returns:
        The reliability, at most 1; 0 or less if noise explains all of the variance.
    """
    scores, changes = resampled[0], resampled[1:] - resampled[0]
    between = float(scores.var(ddof=1))
    return 1 - float(changes.var(axis=1, ddof=1).mean()) / between if between > 0 else 0.0


def min_models(name: str, *, difference: bool = False) -> int:
    """Return the smallest number of models with an interval of a statistic, or of its difference between benchmarks."""
    if difference:
        return MIN_MODELS_DIFFERENCE
    return MIN_MODELS_RBO if name.startswith("rbo") else MIN_MODELS


def interval(name: str, value: float, models: int, reliability_product: float = 1.0, seed: int = 0) -> Estimate:
    """Compute the interval of a rank statistic of `NAMES`.

    `reliability_product` is that of both sides (see `reliability`). At 1 the interval is that of the scores with the
    noise of their items.

    Returns:
        The value with its interval; without one for fewer than `min_models` models, or if nothing is reliable.
    """
    if models < min_models(name) or reliability_product <= 0:
        return Estimate(value, n=models)
    low, high = (interval_from_null(name, value, models, tail, reliability_product, seed) for tail in (TAIL, 1 - TAIL))
    return Estimate(value, low, high, models, method="test inversion")


def interval_from_null(
    name: str, value: float, models: int, above: float = 0.5, reliability_product: float = 1.0, seed: int = 0
) -> float:
    """Compute one bound of a statistic by test inversion; see `interval`.

    Returns:
        The expected value of the statistic under the correlation at which a value above the observed one has the
        probability `above`. The default, 0.5, gives a median-unbiased estimate.
    """
    distributions = statistic_distributions(models, seed)
    correlation = distributions.correlation(name, value, above) / sqrt(reliability_product)
    return distributions.expected(name, min(1.0, max(-1.0, correlation)))


def differences(
    first: Array,
    second: Array,
    downstream: Array,
    reliability_products: tuple[float, float] = (1.0, 1.0),
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare how well two benchmarks predict a downstream result, by each statistic of `NAMES`.

    The interval combines those of both benchmarks with the correlation of the two statistics over draws of models from
    the copula of all three sides (Zou 2007, Psychological Methods 12:399). There is none for fewer than ten models. For
    very similar benchmarks it is conservative. The p-value is from exchanging the two benchmarks' ranks model by model,
    in all ways if these are few. All scores have the shape (models,). `reliability_products` are of each benchmark and
    the downstream result, as in `interval`.
    """
    first_values, second_values = rank_statistics(first, downstream), rank_statistics(second, downstream)
    exchanged = _exchanged_differences(first, second, downstream, seed)
    correlations = _statistic_correlations([first, second, downstream], seed)
    models = len(downstream)
    result = {}
    for name in NAMES:
        values = [float(side[name][0]) for side in (first_values, second_values)]
        if np.isnan(values).any():
            result[name] = Difference(None, None, None, None)
            continue
        bounds: tuple[float | None, float | None] = (None, None)
        if models >= min_models(name, difference=True) and min(reliability_products) > 0:
            bounds = _difference_bounds(name, values, models, reliability_products, correlations[name], seed)
        result[name] = Difference(values[0] - values[1], *bounds, p_value(exchanged[name]))
    return result


def _difference_bounds(
    name: str,
    values: Sequence[float],
    models: int,
    reliability_products: Sequence[float],
    correlation: float,
    seed: int,
) -> tuple[float, float]:
    (low, middle, high), (low_2, middle_2, high_2) = (
        [interval_from_null(name, value, models, tail, product, seed) for tail in (TAIL, 0.5, 1 - TAIL)]
        for value, product in zip(values, reliability_products, strict=True)
    )
    difference = middle - middle_2
    below, above = (middle - low, high_2 - middle_2), (high - middle, middle_2 - low_2)
    widths = [sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)) for a, b in (below, above)]
    return difference - widths[0], difference + widths[1]


def _exchanged_differences(first: Array, second: Array, downstream: Array, seed: int) -> dict[str, Array]:
    """By statistic, the difference of the data, then with ranks exchanged model by model. Shape (1 + exchanges,)."""
    from scipy.stats import rankdata

    ranks = [rankdata(side) for side in (first, second)]
    middle, half = (ranks[0] + ranks[1]) / 2, (ranks[0] - ranks[1]) / 2
    parts: dict[str, list[Array]] = {name: [] for name in NAMES}
    for signs in exchanges(len(first), seed):
        ours, theirs = (rank_statistics(middle + side * signs * half, downstream) for side in (1, -1))
        for name, values in parts.items():
            values.append(ours[name] - theirs[name])
    # An exchange may tie all models of a side; its undefined statistics count as no agreement.
    return {name: np.nan_to_num(np.concatenate(values)) for name, values in parts.items()}


def _statistic_correlations(sides: Sequence[Array], seed: int) -> dict[str, float]:
    """The correlation of each statistic between the two benchmarks, over draws of models."""
    models, scores = len(sides[0]), np.stack(sides)
    rows, columns = np.repeat(scores, len(sides), axis=0), np.tile(scores, (len(sides), 1))
    spearman = rank_statistics(rows, columns)["spearman"].reshape(len(sides), len(sides))
    pearson = 2 * np.sin(pi / 6 * np.nan_to_num(spearman))
    values, vectors = np.linalg.eigh(pearson)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    draws = np.random.default_rng([seed, models]).standard_normal((RESAMPLES, models, 3)) @ root.T
    ours, theirs = (rank_statistics(draws[..., side], draws[..., 2]) for side in (0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: float(np.nan_to_num(np.corrcoef(ours[name], theirs[name])[0, 1])) for name in NAMES}


def models_to_detect(spearman: float) -> int | None:
    """Compute the number of models for a Spearman correlation to be significant with 80 % power; None if not above 0.

    The one-sided test at 5 % uses Fisher's z with the variance 1.06 / (n - 3) of ranks (Fieller, Hartley and Pearson
    1957, Biometrika 44:470).
    """
    if spearman <= 0:
        return None
    quantiles = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(POWER)
    return ceil(3 + 1.06 * (quantiles / atanh(min(spearman, NEARLY_ONE))) ** 2)


def models_to_distinguish(first: float, second: float, between: float) -> int | None:
    """Compute the number of models that shows a difference of two Spearman correlations with 80 % power; None if equal.

    The two-sided test at 5 % is that of Meng, Rosenthal and Rubin (1992), Psychological Bulletin 111:172, equation 1,
    with the variance of ranks as in `models_to_detect`. `between` is the correlation of the two benchmarks.
    """
    r1, r2, r12 = (float(np.clip(value, -NEARLY_ONE, NEARLY_ONE)) for value in (first, second, between))
    if r1 == r2:
        return None
    squares = (r1 * r1 + r2 * r2) / 2
    f = min(1.0, (1 - r12) / (2 * (1 - squares)))
    h = (1 - f * squares) / (1 - squares)
    quantiles = NormalDist().inv_cdf(1 - TAIL) + NormalDist().inv_cdf(POWER)
    return ceil(3 + 1.06 * 2 * (1 - r12) * h * (quantiles / (atanh(r1) - atanh(r2))) ** 2)
