"""Agreement of raters: shares with confidence intervals, Cohen's kappa, and Krippendorff's alpha."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Literal

import numpy as np

from pluralbench_measures.bootstrap import Array, Estimate, Sums, sums_of
from pluralbench_measures.intervals import linearize

Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
NORMAL_975 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


def share_of(count: int, of: int) -> dict[str, float | None]:
    """Compute a share of independent cases with Wilson's 95 % interval (formulas of Newcombe 1998, method 3).

    It is that of scipy's `binomtest(count, of).proportion_ci(method="wilson")`, to the bit, whose import takes half as
    long as building a sample. `share`, `low` and `high` are None if there are no cases.
    """
    if not of:
        return {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    share = count / of
    denominator = 2 * (of + NORMAL_975**2)
    center = (2 * of * share + NORMAL_975**2) / denominator
    half = NORMAL_975 / denominator * sqrt(4 * of * share * (1 - share) + NORMAL_975**2)
    low, high = (center - half if count else 0.0), (center + half if count < of else 1.0)
    return {"count": count, "of": of, "share": share, "low": low, "high": high}


def clustered_share(counts: Sequence[float], of: Sequence[float]) -> dict[str, float | None]:
    """Compute a share of clustered cases with its 95 % interval (see `intervals`), from numbers or credits by cluster.

    The bounds are None for fewer clusters than `intervals.MIN_CLUSTERS`; `share` too if there are no cases.
    """
    if not sum(of):
        return {"share": None, "low": None, "high": None}
    hits, totals = (np.asarray(values, dtype=np.float64)[:, None] for values in (counts, of))
    linearized = linearize(Sums(hits, totals))
    estimate = linearized.share(linearized.sources[0].pooled([0]), [[0]], None, int((totals > 0).sum()))
    return {"share": estimate.value, "low": estimate.low, "high": estimate.high}


def krippendorff_alpha(counts: Sequence[Sequence[int]]) -> Mapping[Level, float | None]:
    """Compute Krippendorff's alpha of ratings on a scale, by level of measurement.

    Alpha is one minus the disagreement within units over the disagreement expected by chance (Krippendorff, "Computing
    Krippendorff's Alpha-Reliability", 2011). Within a unit of m ratings, each ordered pair of ratings has the weight
    1 / (m - 1). The expected disagreement is over all ordered pairs of ratings of all units.

    Args:
        counts: Number of ratings for each value of the scale, by unit. The values are in order, which "nominal"
            ignores, and one step apart, which only "interval" uses. Units with fewer than two ratings are left out.

    Returns:
        Alpha by level; None where it is undefined, such as when all ratings are the same.
    """
    table = np.array([unit for unit in counts if sum(unit) > 1], dtype=np.float64)
    if not len(table) or (table.sum(0) > 0).sum() < 2:
        return dict.fromkeys(LEVELS)
    totals, weights = table.sum(0), 1 / (table.sum(1) - 1)
    observed = (table * weights[:, None]).T @ table - np.diag(weights @ table)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    # The ordinal distance of two values is the number of ratings between them, with half of those at either end.
    middles, steps = totals.cumsum() - totals / 2, np.arange(len(totals))
    distances: dict[Level, np.ndarray] = {
        "nominal": 1.0 - np.eye(len(totals)),
        "ordinal": np.subtract.outer(middles, middles) ** 2,
        "interval": np.subtract.outer(steps, steps) ** 2,
    }
    return {
        level: float(1 - (observed * distance).sum() / (expected * distance).sum())
        for level, distance in distances.items()
    }


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
    linearized = linearize(sums_of(row * len(labels) + column, cluster, np.ones(n), shape=(number, cells)))
    values = _kappa(linearized.sources[0].counts.reshape(-1, len(labels), len(labels)))
    return linearized.estimate(values, [range(cells)], n, number, within=(-1.0, 1.0))


def _kappa(tables: Array) -> Array:
    """Kappa of contingency tables of shape (rows, labels, labels)."""
    shares = tables / tables.sum((1, 2), keepdims=True)
    agreed = np.trace(shares, axis1=1, axis2=2)
    chance = (shares.sum(1) * shares.sum(2)).sum(1)
    return np.asarray((agreed - chance) / (1 - chance))
