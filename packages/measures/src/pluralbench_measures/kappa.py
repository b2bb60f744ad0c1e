"""Cohen's kappa: agreement of two raters beyond chance."""

from collections.abc import Sequence

import numpy as np

from pluralbench_measures.bootstrap import Array, Estimate, sums_of
from pluralbench_measures.intervals import perturb


def cohens_kappa(first: Sequence[str], second: Sequence[str], clusters: Sequence[str] | None = None) -> Estimate:
    """Compute Cohen's kappa of two raters' labels, with its interval (see `intervals`).

    Args:
        first: Labels of the first rater, by item.
        second: Labels of the second rater, by item.
        clusters: Cluster of each item, such as its prompt. Default: each item is its own cluster.

    Returns:
        Kappa; its value is None if both raters give the same label to all items. There is no interval if no cluster
        has an influence, such as when all labels agree.
    """
    labels, n = sorted({*first, *second}), len(first)
    names = list(range(n)) if clusters is None else list(clusters)
    number = len(set(names))
    if len(labels) < 2:
        return Estimate(None, n=n, clusters=number)
    row, column = (np.searchsorted(labels, side) for side in (first, second))
    cluster = np.unique(names, return_inverse=True)[1]
    cells = len(labels) ** 2
    perturbed = perturb(sums_of(row * len(labels) + column, cluster, np.ones(n), shape=(number, cells)))
    values = _kappa(perturbed.sources[0].counts.reshape(-1, len(labels), len(labels)))
    return perturbed.estimate(values, [range(cells)], n, number, within=(-1.0, 1.0))


def _kappa(tables: Array) -> Array:
    """Kappa of contingency tables of shape (rows, labels, labels)."""
    shares = tables / tables.sum((1, 2), keepdims=True)
    agreed = np.trace(shares, axis1=1, axis2=2)
    chance = (shares.sum(1) * shares.sum(2)).sum(1)
    return np.asarray((agreed - chance) / (1 - chance))
