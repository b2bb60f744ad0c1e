"""Sums of decisions by cluster and cell, and a seeded bootstrap over whole clusters (prompts or users).

A *cell* is the smallest part of a benchmark that has a weight, such as a category. A statistic is a function of the
sums of its cells. Computed row by row, it comes out once for the data (row 0) and once for each resample. Confidence
intervals of scores come from `pluralbench_measures.intervals`; the resamples measure the noise in differences between
models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE = 0.95
COUNTS_AT_ONCE = 20_000_000  # cluster counts in memory at a time


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval; None is what is missing.

    Attributes:
        value: The value.
        low: Lower bound.
        high: Upper bound.
        n: Number of decisions.
        clusters: Number of clusters of these decisions.
        method: How the interval is computed: "effective" or "t" (see `pluralbench_measures.intervals`), "test
            inversion" (see `pluralbench_measures.rank_intervals`), "recovered" (see
            `pluralbench_measures.independent`), "two-way" (see `pluralbench_measures.crossed`) or "bootstrap".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    clusters: int | None = None
    method: str | None = None


@dataclass(frozen=True)
class Sums:
    """Sums of decisions by cluster and cell.

    Attributes:
        won: Number of right decisions, or their credits from 0 to 1. Shape (clusters, cells).
        counts: Number of all decisions. Shape (clusters, cells).
        partial: Sum of c (1 - c) over the decisions' credits c, by which they vary less than right and wrong ones of
            the same mean. Shape (cells,). Default: each decision is right or wrong.
    """

    won: Array
    counts: Array
    partial: Array | float = 0.0


@dataclass(frozen=True)
class Resampled:
    """Sums by cell of the data (row 0) and of changed data (each other row), such as resamples.

    Attributes:
        won: Number of right decisions. Shape (rows, cells).
        counts: Number of all decisions. Shape (rows, cells).
        present: Whether a cluster has a decision in a cell. Shape (clusters, cells).
    """

    won: Array
    counts: Array
    present: NDArray[np.bool_]

    def clusters(self, cells: Sequence[int]) -> int:
        """Count the clusters that have a decision in at least one of the cells."""
        return int(self.present[:, cells].any(1).sum())

    def decisions(self, cells: Sequence[int]) -> int:
        """Count the decisions of the cells."""
        return int(self.counts[0, cells].sum())

    def pooled(self, cells: Sequence[int]) -> Array:
        """Compute the accuracy over all decisions of the cells, NaN if there is none. Shape (rows,)."""
        return ratio(self.won[:, cells].sum(1), self.counts[:, cells].sum(1))

    def weighted(self, cells: Sequence[int], weights: Sequence[float]) -> Array:
        """Compute the weighted mean of the cells' accuracies over the cells that a row has. Shape (rows,)."""
        accuracies = ratio(self.won[:, cells], self.counts[:, cells])
        shares = np.where(np.isnan(accuracies), 0.0, np.asarray(weights))
        return ratio((np.nan_to_num(accuracies) * shares).sum(1), shares.sum(1))


def sums_of(
    cell: NDArray[np.int64],
    cluster: NDArray[np.int64],
    won: Array,
    counts: Array | None = None,
    shape: tuple[int, int] | None = None,
) -> Sums:
    """Sum decisions by cluster and cell, which are numbered from 0.

    `won` has the number of right decisions in each row, such as 0 or 1; without `counts`, which default to 1, also a
    credit from 0 to 1. `shape` has the numbers of clusters and cells; default: the largest that occur, plus one.
    """
    shape = shape or (int(cluster.max(initial=-1)) + 1, int(cell.max(initial=-1)) + 1)
    # A row of several decisions counts those that are right; a row of one may have a credit.
    partial = np.zeros_like(won) if counts is not None else (won * (1 - won)).clip(min=0)
    order = np.argsort(won, kind="stable")  # a sum of credits depends on their order in its last digits
    cell, cluster, won = cell[order], cluster[order], won[order]
    sums = Sums(np.zeros(shape), np.zeros(shape), np.bincount(cell, partial[order], shape[1]).astype(np.float64))
    np.add.at(sums.won, (cluster, cell), won)
    np.add.at(sums.counts, (cluster, cell), np.ones_like(won) if counts is None else counts[order])
    return sums


def order_by_sums(tables: Sequence[Sums]) -> NDArray[np.int64]:
    """Return the order of clusters by their sums, so that names and order of the data change neither draw nor digit."""
    columns = [column for sums in tables for part in (sums.won, sums.counts) for column in part.T]
    return np.lexsort(columns) if columns else np.arange(len(tables[0].won))


def resample(tables: Sequence[Sums], seed: int) -> list[Resampled]:
    """Draw clusters with replacement, `RESAMPLES` times, the same ones for tables on the same clusters.

    The draws depend on the seed and the sums alone: clusters are numbered by their sums, not as the data have them.
    """
    flat = np.concatenate([part for sums in tables for part in (sums.won, sums.counts)], axis=1)[order_by_sums(tables)]
    clusters = len(flat)
    generator = np.random.default_rng(seed)
    totals = [flat.sum(0)[None]]
    remaining = RESAMPLES
    while remaining and clusters:
        size = min(remaining, max(1, COUNTS_AT_ONCE // clusters))
        totals.append(generator.multinomial(clusters, np.full(clusters, 1 / clusters), size) @ flat)
        remaining -= size
    ends = np.cumsum([sums.won.shape[1] for sums in tables for _ in ("won", "counts")])
    parts = np.split(np.concatenate(totals), ends[:-1], axis=1)
    pairs = zip(parts[::2], parts[1::2], tables, strict=True)
    return [Resampled(won, counts, sums.counts > 0) for won, counts, sums in pairs]


def mean_of(values: Sequence[Array]) -> Array:
    """Average several accuracies of shape (rows,) without weights; NaN where one is missing."""
    return np.stack(values).mean(0) if values else np.full(1, np.nan)


def bootstrap_estimate(values: Array, n: int | None = None, clusters: int | None = None) -> Estimate:
    """Estimate any statistic, such as a difference, with the percentile interval of its resamples.

    `values` has the statistic of the data, then of each resample. Shape (1 + resamples,).
    """
    resampled = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or not len(resampled):
        return Estimate(None if np.isnan(values[0]) else float(values[0]), None, None, n, clusters)
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(bound) for bound in np.quantile(resampled, [tail, 1 - tail]))
    return Estimate(float(values[0]), low, high, n, clusters, "bootstrap")


def ratio(part: ArrayLike, whole: ArrayLike, missing: float = np.nan) -> Array:
    """Divide part by whole, broadcast to each other; `missing` where the whole is not above 0."""
    above, below = np.broadcast_arrays(np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64))
    return np.asarray(np.divide(above, below, out=np.full(above.shape, missing), where=below > 0))
