"""Tests of differences (a p-value from an interval, exchanges, Holm's adjustment), and rank intervals from them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pluralbench_measures.bootstrap import CONFIDENCE, Array, Estimate

PERMUTATIONS = 9999
SIGNS_AT_ONCE = 20_000_000  # clusters times permutations in memory at a time
ROUNDING = 1e-9  # smaller differences count as equal


def exchanges(clusters: int, seed: int, permutations: int = PERMUTATIONS) -> Iterator[Array]:
    """Yield the signs of exchanges in parts of shape (exchanges, clusters): -1 for an exchanged cluster, else 1.

    The first exchange is the data, without any exchanged cluster. All 2^clusters exchanges follow if these are at most
    `permutations`; otherwise the data once more, and `permutations` exchanges that are drawn.
    """
    yield np.ones((1, clusters))
    if clusters < permutations.bit_length():
        ways = np.arange(2**clusters)[:, None] >> np.arange(clusters)
        yield (1 - 2 * (ways & 1)).astype(np.float64)
        return
    yield np.ones((1, clusters))
    generator = np.random.default_rng(seed)
    remaining = permutations
    while remaining:
        size = min(remaining, max(1, SIGNS_AT_ONCE // clusters))
        yield (2 * generator.integers(0, 2, (size, clusters), dtype=np.int8) - 1).astype(np.float64)
        remaining -= size


def p_value(differences: Array) -> float | None:
    """Compute a two-sided p-value: the share of exchanges with an absolute difference at least as large.

    The first of the `differences` is that of the data. One exchange equals it, so p is never 0. None if it is missing.
    """
    if np.isnan(differences[0]):
        return None
    return float((np.abs(differences[1:]) >= abs(differences[0]) - ROUNDING).mean())


def interval_p_value(difference: Estimate) -> float | None:
    """Compute the two-sided p-value of no difference from a 95 % interval; None without an interval.

    It is below 5 % exactly if the interval excludes 0. The standard error is the distance to the bound nearer to 0,
    divided by the quantile of Student's t with one degree of freedom less than the clusters.
    """
    from scipy.special import stdtr, stdtrit

    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return None
    half = value - low if value > 0 else high - value
    degrees = max((difference.clusters or 0) - 1, 1)
    if half <= 0:
        return 1.0 if value == 0 else 0.0
    quantile = float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
    return float(2 * stdtr(degrees, -quantile * abs(value) / half))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests by Holm's method, in the same order; None is not a test and stays None."""
    tested = np.array([p for p in p_values if p is not None])
    order = tested.argsort()
    steps = np.maximum.accumulate(tested[order] * np.arange(len(tested), 0, -1))
    adjusted = iter(np.minimum(steps, 1.0)[order.argsort()].tolist())
    return [None if p is None else next(adjusted) for p in p_values]


Pair = tuple[int, int]


class RankInterval(NamedTuple):
    """The confidence interval of a model's rank; rank 1 is the best.

    Attributes:
        best: One plus the number of models that are significantly better.
        worst: The number of models minus those that are significantly worse.
    """

    best: int
    worst: int


def ranks(models: int, differences: Mapping[Pair, Estimate]) -> list[RankInterval]:
    """Compute rank intervals that hold jointly with 95 % confidence (Mogstad et al. 2024, Inference for Ranks).

    Args:
        models: Number of models.
        differences: By pair (first, second) of models, numbered from 0, the value of the second minus that of the
            first, with its interval. Missing pairs do not differ.

    Returns:
        The rank interval of each model.
    """
    better = [0] * models
    worse = [0] * models
    for up, down in distinct_pairs(differences):
        better[down] += 1
        worse[up] += 1
    return [RankInterval(1 + above, models - below) for above, below in zip(better, worse, strict=True)]


def distinct_pairs(differences: Mapping[Pair, Estimate]) -> list[Pair]:
    """List the pairs of models that differ significantly: p is below 5 % after Holm's adjustment over all pairs.

    Args:
        differences: See `ranks`.

    Returns:
        The pairs, the better model first.
    """
    adjusted = holm([interval_p_value(difference) for difference in differences.values()])
    pairs = []
    for ((first, second), difference), p in zip(differences.items(), adjusted, strict=True):
        if difference.value is not None and p is not None and p < 1 - CONFIDENCE:
            pairs.append((second, first) if difference.value > 0 else (first, second))
    return pairs
