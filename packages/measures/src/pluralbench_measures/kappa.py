"""Cohen's kappa: how far two raters agree beyond what chance alone would make them."""

from collections.abc import Sequence

import numpy as np

from pluralbench_measures.bootstrap import Array, Estimate, sums_of
from pluralbench_measures.intervals import perturb


def cohens_kappa(first: Sequence[str], second: Sequence[str], clusters: Sequence[str] | None = None) -> Estimate:
    """Kappa of two raters' labels of the same items, with its interval (see `intervals`).

    clusters: of the items, such as prompts; without them each item is by itself. The value is None where kappa is
    undefined, since both give one same label to all; the interval is None where no cluster pulls it, as where all
    labels agree.
    """
    labels, n = sorted({*first, *second}), len(first)
    names = list(range(n)) if clusters is None else list(clusters)
    among = len(set(names))
    if len(labels) < 2:
        return Estimate(None, n=n, clusters=among)
    one, other = (np.searchsorted(labels, side) for side in (first, second))
    cluster = np.unique(names, return_inverse=True)[1]
    cells = len(labels) ** 2
    tilted = perturb(sums_of(one * len(labels) + other, cluster, np.ones(n), shape=(among, cells)))
    values = _kappa(tilted.sources[0].counts.reshape(-1, len(labels), len(labels)))
    return tilted.spread(values, [range(cells)], n, among, within=(-1.0, 1.0))


def _kappa(tables: Array) -> Array:
    """Counts of labels by both raters, [rows, labels, labels], to [rows]."""
    shares = tables / tables.sum((1, 2), keepdims=True)
    agreed = np.trace(shares, axis1=1, axis2=2)
    chance = (shares.sum(1) * shares.sum(2)).sum(1)
    return np.asarray((agreed - chance) / (1 - chance))
