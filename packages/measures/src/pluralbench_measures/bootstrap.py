"""How sure an accuracy is: a bootstrap that draws whole clusters (prompts or users), seeded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE = 0.95
DRAWN_AT_ONCE = 20_000_000  # cluster counts in memory at a time


@dataclass(frozen=True)
class Resampled:
    """Sums by leaf, as they are (row 0) and in each resample. wins, counts: [1 + resamples, leaves].

    present: whether a cluster has a decision in a leaf, [clusters, leaves].
    """

    wins: Array
    counts: Array
    present: NDArray[np.bool_]

    def clusters(self, leaves: Sequence[int]) -> int:
        """How many clusters have a decision in some of the leaves."""
        return int(self.present[:, leaves].any(1).sum())

    def pooled(self, leaves: Sequence[int]) -> Array:
        """Accuracy over all decisions of some leaves, NaN where there is none: [1 + resamples]."""
        return _ratio(self.wins[:, leaves].sum(1), self.counts[:, leaves].sum(1))

    def weighted(self, leaves: Sequence[int], weights: Sequence[float]) -> Array:
        """Weighted mean of the leaves' accuracies; a resample that misses a leaf leaves it out."""
        accuracies = _ratio(self.wins[:, leaves], self.counts[:, leaves])
        shares = np.where(np.isnan(accuracies), 0.0, np.asarray(weights))
        return _ratio((np.nan_to_num(accuracies) * shares).sum(1), shares.sum(1))


def resample(
    leaf: NDArray[np.int64], cluster: NDArray[np.int64], won: Array, seed: int, counts: Array | None = None
) -> Resampled:
    """Draw clusters with replacement; the same ones whenever seed and number of clusters are the same.

    leaf, cluster: of each decision, numbered from 0. won: 0 or 1, or a sum over the `counts` decisions of a row.
    """
    leaves, clusters = int(leaf.max(initial=-1)) + 1, int(cluster.max(initial=-1)) + 1
    sums = np.zeros((clusters, leaves, 2))
    np.add.at(sums, (cluster, leaf), np.stack([won, np.ones_like(won) if counts is None else counts], axis=1))
    flat = sums.reshape(clusters, leaves * 2)
    generator = np.random.default_rng(seed)
    totals = [flat.sum(0)[None]]
    left = RESAMPLES
    while left and clusters:
        size = min(left, max(1, DRAWN_AT_ONCE // clusters))
        totals.append(generator.multinomial(clusters, np.full(clusters, 1 / clusters), size) @ flat)
        left -= size
    drawn = np.concatenate(totals)
    stacked = drawn.reshape(len(drawn), leaves, 2)
    return Resampled(stacked[..., 0], stacked[..., 1], sums[..., 1] > 0)


def mean_of(values: Sequence[Array]) -> Array:
    """The unweighted mean of several accuracies, each [1 + resamples]; NaN where one is missing."""
    return np.stack(values).mean(0) if values else np.full(1, np.nan)


def estimate(values: Array, clusters: int) -> dict[str, Any]:
    """The value as it is and its interval: [1 + resamples] to {"accuracy", "interval"}; None where it is missing.

    clusters: of how many the value is. Where every decision came out alike a bootstrap sees no spread, so the interval
    is then the exact binomial one over the clusters. One cluster says nothing of the spread of others, so it has none.
    """
    accuracy, interval = None if np.isnan(values[0]) else float(values[0]), interval_of(values)
    if accuracy in {0.0, 1.0} and interval is not None:
        from scipy.stats import binomtest  # noqa: PLC0415 - two seconds that `--help` saves

        exact = binomtest(round(accuracy * clusters), clusters).proportion_ci(CONFIDENCE, method="exact")
        return {"accuracy": accuracy, "interval": [float(exact.low), float(exact.high)]}
    return {"accuracy": accuracy, "interval": interval if clusters > 1 else None}


def interval_of(values: Array) -> list[float] | None:
    """The bounds between which the resamples of a value lie, [1 + resamples]; None where the value is missing."""
    drawn = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or not len(drawn):
        return None
    tail = (1 - CONFIDENCE) / 2
    return [float(bound) for bound in np.quantile(drawn, [tail, 1 - tail])]


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0)
