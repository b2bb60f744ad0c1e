"""How sure a rank correlation is: intervals by a bootstrap over models and items, differences, and power.

A percentile bootstrap fails here: models drawn twice are ties, and six models have few different draws. So models are
drawn from a Gaussian copula instead, whose strength is the one unknown (any increasing transform of the scores leaves
it as it is), and the interval has every strength under which a value as far out as the one at hand is not rare: 2.5 %
on either side, ties counting half (the test-inversion bootstrap: Carpenter 1999, J. R. Stat. Soc. B 61:159; mid-p:
Lancaster 1961, J. Am. Stat. Assoc. 56:223). At a strength of 0 all orders are equally likely, as in the permutation
test. A strength is told as what the statistic amounts to under it: for Spearman and tau-b in the whole population
(6/pi asin(r/2) and 2/pi asin r; Kruskal 1958, J. Am. Stat. Assoc. 53:814), for the others, which depend on how many
models there are, on average over draws of as many models.

Where resamples of the items are known, their noise is taken out: noise of the items weakens a correlation by the root
of the product of both reliabilities (Spearman 1904, Am. J. Psychol. 15:72), so the bounds of the strength are divided
by it (Hunter and Schmidt 2004, Methods of Meta-Analysis, ch. 3). The interval is then of what endless items would give.
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

# Among fewer models a statistic has so few values that its intervals do not hold what they promise.
FEWEST = 6
FEWEST_OF_RBO = 8
FEWEST_OF_DIFFERENCE = 10
POWER = 0.8
TAIL = (1 - CONFIDENCE) / 2
NEARLY_ONE = 0.99  # a correlation of 1 among few models is no more than this in a plan
_GRID = [-1.0, *np.tanh(np.linspace(-3.2, 3.2, 65)).tolist(), 1.0]


@dataclass(frozen=True)
class Difference:
    """How much better the first of two benchmarks predicts, by one statistic; what is missing is None.

    p_value: two-sided, of no difference. low, high: of the difference, without the noise of the items where that is
    known.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None


class StatisticDistributions:
    """How the statistics are distributed over draws of so many models from a Gaussian copula, strength by strength.

    All strengths share their draws, and one is computed when it is first asked for.
    """

    def __init__(self, models: int, seed: int = 0) -> None:
        generator = np.random.default_rng([seed, models])
        first, self._other = generator.standard_normal((2, RESAMPLES, models))
        self._first = -np.sort(-first, axis=1)
        self._order = np.arange(models, 0, -1.0)
        self._known: dict[int, dict[str, Array]] = {}

    def at(self, place: int) -> dict[str, Array]:
        """The resampled values of each statistic at a place of the grid of strengths: [resamples]."""
        if place not in self._known:
            strength = _GRID[place]
            second = strength * self._first + sqrt(1 - strength**2) * self._other
            self._known[place] = rank_statistics(self._order, second)
        return self._known[place]

    def strength(self, name: str, value: float, above: float) -> float:
        """The strength under which a value above this one, or half an equal one, is as likely as `above`."""
        place = bisect_left(
            range(len(_GRID)), above, lo=1, hi=len(_GRID) - 1, key=lambda n: self._above(name, value, n)
        )
        likely = [self._above(name, value, n) for n in (place - 1, place)]
        return float(np.interp(above, likely, _GRID[place - 1 : place + 1]))

    def told(self, name: str, strength: float) -> float:
        """What the statistic amounts to under a strength."""
        if name == "spearman":
            return 6 / pi * asin(strength / 2)
        if name == "kendall_tau_b":
            return 2 / pi * asin(strength)
        place = bisect_left(_GRID, strength, lo=1, hi=len(_GRID) - 1)
        means = [float(self.at(n)[name].mean()) for n in (place - 1, place)]
        return float(np.interp(strength, _GRID[place - 1 : place + 1], means))

    def _above(self, name: str, value: float, place: int) -> float:
        drawn = self.at(place)[name]
        return float((drawn > value + ROUNDING).mean() + (np.abs(drawn - value) <= ROUNDING).mean() / 2)


@lru_cache(maxsize=16)
def statistic_distributions(models: int, seed: int = 0) -> StatisticDistributions:
    """The `StatisticDistributions` of so many models, the same ones each time."""
    return StatisticDistributions(models, seed)


def reliability(resampled: Array) -> float:
    """The share of the variance between models that is not noise of the items, at most 1; 0 or less where none is left.

    resampled: the models' scores as they are, and for items drawn anew, the same ones for all models:
    [1 + resamples, models]. What all models gain or lose together is no noise, since it changes no rank.
    """
    scores, moved = resampled[0], resampled[1:] - resampled[0]
    between = float(scores.var(ddof=1))
    return 1 - float(moved.var(axis=1, ddof=1).mean()) / between if between > 0 else 0.0


def min_models(name: str, *, difference: bool = False) -> int:
    """How many models an interval of this statistic needs, or one of a difference between two benchmarks."""
    if difference:
        return FEWEST_OF_DIFFERENCE
    return FEWEST_OF_RBO if name.startswith("rbo") else FEWEST


def interval(name: str, value: float, models: int, kept: float = 1.0, seed: int = 0) -> Estimate:
    """The value with its interval; without one for fewer than `min_models` models and where the noise leaves nothing.

    name: of `NAMES`. kept: the product of both sides' reliabilities (see `reliability`), 1 where they are not known;
    the interval is then of the scores with their noise.
    """
    if models < min_models(name) or kept <= 0:
        return Estimate(value, n=models)
    low, high = (interval_from_null(name, value, models, tail, kept, seed) for tail in (TAIL, 1 - TAIL))
    return Estimate(value, low, high, models, method="test inversion")


def interval_from_null(
    name: str, value: float, models: int, above: float = 0.5, kept: float = 1.0, seed: int = 0
) -> float:
    """What the statistic amounts to at the strength under which a value above this one is as likely as `above`.

    At 0.5 this is the estimate that is as often too high as too low, without the noise of the items.
    """
    drawn = statistic_distributions(models, seed)
    strength = drawn.strength(name, value, above) / sqrt(kept)
    return drawn.told(name, min(1.0, max(-1.0, strength)))


def differences(
    first: Array, second: Array, downstream: Array, kept: tuple[float, float] = (1.0, 1.0), seed: int = 0
) -> dict[str, Difference]:
    """How much better the first benchmark predicts the downstream than the second, by each statistic of `NAMES`.

    first, second, downstream: scores of the same models, [models]. kept: for either benchmark, as in `interval`.

    The interval, from ten models on, is made of both benchmarks' own, with the correlation of the two statistics as it
    is over draws of models from the copula of all three sides (Zou 2007, Psychological Methods 12:399); where the two
    benchmarks are much alike it is wider than it need be. The p-value is from exchanging the two benchmarks' ranks
    model by model, in all ways where these are few.
    """
    ours, theirs = rank_statistics(first, downstream), rank_statistics(second, downstream)
    exchanged = _exchanged(first, second, downstream, seed)
    together = _together([first, second, downstream], seed)
    models = len(downstream)
    found = {}
    for name in NAMES:
        values = [float(side[name][0]) for side in (ours, theirs)]
        if np.isnan(values).any():
            found[name] = Difference(None, None, None, None)
            continue
        bounds: tuple[float | None, float | None] = (None, None)
        if models >= min_models(name, difference=True) and min(kept) > 0:
            bounds = _bounds(name, values, models, kept, together[name], seed)
        found[name] = Difference(values[0] - values[1], *bounds, p_value(exchanged[name]))
    return found


def _bounds(
    name: str, values: Sequence[float], models: int, kept: Sequence[float], together: float, seed: int
) -> tuple[float, float]:
    (low, middle, high), (low_2, middle_2, high_2) = (
        [interval_from_null(name, value, models, tail, share, seed) for tail in (TAIL, 0.5, 1 - TAIL)]
        for value, share in zip(values, kept, strict=True)
    )
    difference = middle - middle_2
    below, above = (middle - low, high_2 - middle_2), (high - middle, middle_2 - low_2)
    spreads = [sqrt(max(0.0, a * a + b * b - 2 * together * a * b)) for a, b in (below, above)]
    return difference - spreads[0], difference + spreads[1]


def _exchanged(first: Array, second: Array, downstream: Array, seed: int) -> dict[str, Array]:
    """The differences as they are, then with ranks exchanged model by model: [1 + exchanges], for each statistic."""
    from scipy.stats import rankdata  # noqa: PLC0415 - two seconds that `--help` saves

    ranks = [rankdata(side) for side in (first, second)]
    middle, apart = (ranks[0] + ranks[1]) / 2, (ranks[0] - ranks[1]) / 2
    parts: dict[str, list[Array]] = {name: [] for name in NAMES}
    for signs in exchanges(len(first), seed):
        ours, theirs = (rank_statistics(middle + way * signs * apart, downstream) for way in (1, -1))
        for name, values in parts.items():
            values.append(ours[name] - theirs[name])
    # Where an exchange ties a whole side, what is undefined agrees with nothing.
    return {name: np.nan_to_num(np.concatenate(values)) for name, values in parts.items()}


def _together(sides: Sequence[Array], seed: int) -> dict[str, float]:
    """The correlation of each statistic of the first with that of the second benchmark over draws of models."""
    models = len(sides[0])
    pairs = [[float(rank_statistics(one, other)["spearman"][0]) for other in sides] for one in sides]
    strength = 2 * np.sin(pi / 6 * np.nan_to_num(np.array(pairs)))
    values, vectors = np.linalg.eigh(strength)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    drawn = np.random.default_rng([seed, models]).standard_normal((RESAMPLES, models, 3)) @ root.T
    ours, theirs = (rank_statistics(drawn[..., side], drawn[..., 2]) for side in (0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: float(np.nan_to_num(np.corrcoef(ours[name], theirs[name])[0, 1])) for name in NAMES}


def models_to_detect(spearman: float) -> int | None:
    """How many models it takes for a Spearman correlation to be significant in 80 of 100 studies; None at 0.

    By Fisher's z with the variance 1.06 / (n - 3) of ranks (Fieller, Hartley and Pearson 1957, Biometrika 44:470);
    one-sided at 5 %, as `permutation_test` is.
    """
    if spearman <= 0:
        return None
    wanted = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(POWER)
    return ceil(3 + 1.06 * (wanted / atanh(min(spearman, NEARLY_ONE))) ** 2)


def models_to_distinguish(first: float, second: float, between: float) -> int | None:
    """How many models it takes to tell two benchmarks' Spearman correlations apart in 80 of 100 studies; None if equal.

    first, second: with one downstream result. between: of the two benchmarks. For the two-sided test at 5 % of Meng,
    Rosenthal and Rubin (1992), Psychological Bulletin 111:172, equation 1, with the variance of ranks as above.
    """
    r1, r2, r12 = (float(np.clip(value, -NEARLY_ONE, NEARLY_ONE)) for value in (first, second, between))
    if r1 == r2:
        return None
    squares = (r1 * r1 + r2 * r2) / 2
    f = min(1.0, (1 - r12) / (2 * (1 - squares)))
    h = (1 - f * squares) / (1 - squares)
    wanted = NormalDist().inv_cdf(1 - TAIL) + NormalDist().inv_cdf(POWER)
    return ceil(3 + 1.06 * 2 * (1 - r12) * h * (wanted / (atanh(r1) - atanh(r2))) ** 2)
