"""Sums of decisions by cluster, and a bootstrap that draws whole clusters (prompts or users), seeded.

Numbers are made of sums by *leaf*, the smallest part that a benchmark weighs, such as a category. Whatever is made of
the leaves' sums, row by row, comes out once as it is and once for each resample. How sure a number is says
`pluralbench_measures.intervals`, from the same sums; the resamples say how much of what tells models apart is noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE = 0.95
DRAWN_AT_ONCE = 20_000_000  # cluster counts in memory at a time


@dataclass(frozen=True)
class Estimate:
    """A value and its interval, each None where it is missing.

    n: how many decisions it is over. clusters: how many clusters these are in. Both None where they say nothing.
    method: how the interval was made, None without one: "effective" and "t" (see `pluralbench_measures.intervals`),
    "test inversion" (see `pluralbench_measures.rank_intervals`) or "bootstrap".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    clusters: int | None = None
    method: str | None = None


@dataclass(frozen=True)
class Sums:
    """Sums by cluster and leaf, both [clusters, leaves]. won: decisions that are right. counts: all of them."""

    won: Array
    counts: Array


@dataclass(frozen=True)
class Resampled:
    """Sums by leaf, as they are (row 0) and changed in some way, such as in each resample. won, counts: [rows, leaves].

    present: whether a cluster has a decision in a leaf, [clusters, leaves].
    """

    won: Array
    counts: Array
    present: NDArray[np.bool_]

    def clusters(self, leaves: Sequence[int]) -> int:
        """How many clusters have a decision in some of the leaves."""
        return int(self.present[:, leaves].any(1).sum())

    def decisions(self, leaves: Sequence[int]) -> int:
        """How many decisions some leaves have."""
        return int(self.counts[0, leaves].sum())

    def pooled(self, leaves: Sequence[int]) -> Array:
        """Accuracy over all decisions of some leaves, NaN where there is none: [rows]."""
        return ratio(self.won[:, leaves].sum(1), self.counts[:, leaves].sum(1))

    def weighted(self, leaves: Sequence[int], weights: Sequence[float]) -> Array:
        """Weighted mean of the leaves' accuracies; a row that misses a leaf leaves it out: [rows]."""
        accuracies = ratio(self.won[:, leaves], self.counts[:, leaves])
        shares = np.where(np.isnan(accuracies), 0.0, np.asarray(weights))
        return ratio((np.nan_to_num(accuracies) * shares).sum(1), shares.sum(1))


def sums_of(
    leaf: NDArray[np.int64],
    cluster: NDArray[np.int64],
    won: Array,
    counts: Array | None = None,
    shape: tuple[int, int] | None = None,
) -> Sums:
    """The sums of decisions by cluster and leaf.

    leaf, cluster: of each decision, numbered from 0. won: 0 or 1, or a sum over the `counts` decisions of a row.
    shape: how many clusters and leaves there are; without it, as many as are named.
    """
    shape = shape or (int(cluster.max(initial=-1)) + 1, int(leaf.max(initial=-1)) + 1)
    sums = Sums(np.zeros(shape), np.zeros(shape))
    np.add.at(sums.won, (cluster, leaf), won)
    np.add.at(sums.counts, (cluster, leaf), np.ones_like(won) if counts is None else counts)
    return sums


def resample(sums: Sums, seed: int) -> Resampled:
    """Draw clusters with replacement; the same ones whenever the seed and the number of clusters are the same.

    So two runs on the same clusters are resampled together by resampling each with one seed.
    """
    clusters, leaves = sums.won.shape
    flat = np.concatenate([sums.won, sums.counts], axis=1)
    generator = np.random.default_rng(seed)
    totals = [flat.sum(0)[None]]
    left = RESAMPLES
    while left and clusters:
        size = min(left, max(1, DRAWN_AT_ONCE // clusters))
        totals.append(generator.multinomial(clusters, np.full(clusters, 1 / clusters), size) @ flat)
        left -= size
    drawn = np.concatenate(totals)
    return Resampled(drawn[:, :leaves], drawn[:, leaves:], sums.counts > 0)


def mean_of(values: Sequence[Array]) -> Array:
    """The unweighted mean of several accuracies, each [rows]; NaN where one is missing."""
    return np.stack(values).mean(0) if values else np.full(1, np.nan)


def spread(values: Array, n: int | None = None, clusters: int | None = None) -> Estimate:
    """The estimate of any number, such as a difference: its interval is where the resamples lie, [1 + resamples]."""
    drawn = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or not len(drawn):
        return Estimate(None if np.isnan(values[0]) else float(values[0]), None, None, n, clusters)
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(bound) for bound in np.quantile(drawn, [tail, 1 - tail]))
    return Estimate(float(values[0]), low, high, n, clusters, "bootstrap")


def ratio(part: ArrayLike, whole: ArrayLike, missing: float = np.nan) -> Array:
    """part / whole, each broadcast to the other; `missing` where the whole is not above 0."""
    above, below = np.broadcast_arrays(np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64))
    return np.asarray(np.divide(above, below, out=np.full(above.shape, missing), where=below > 0))
