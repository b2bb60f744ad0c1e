"""Agreement of annotators: shares with confidence intervals, and Krippendorff's alpha."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from pluralbench_measures.bootstrap import Sums
from pluralbench_measures.intervals import perturb

Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def share_of(count: int, of: int) -> dict[str, float | None]:
    """Compute a share of independent cases with Wilson's 95 % interval.

    Args:
        count: Number of cases that count.
        of: Number of all cases.

    Returns:
        `count`, `of`, `share`, `low` and `high`; the last three are None if there are no cases.
    """
    from scipy.stats import binomtest

    if not of:
        return {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    interval = binomtest(count, of).proportion_ci(method="wilson")
    low, high = float(interval.low), float(interval.high)
    return {"count": count, "of": of, "share": count / of, "low": low, "high": high}


def clustered_share(counts: Sequence[int], of: Sequence[int]) -> dict[str, float | None]:
    """Compute a share of clustered cases with its 95 % interval (see `intervals`).

    Args:
        counts: Number of cases that count, by cluster.
        of: Number of all cases, by cluster.

    Returns:
        `share`, `low` and `high`. The bounds are None for fewer clusters than `intervals.MIN_CLUSTERS`; all three are
        None if there are no cases.
    """
    if not sum(of):
        return {"share": None, "low": None, "high": None}
    hits, totals = (np.asarray(values, dtype=np.float64)[:, None] for values in (counts, of))
    perturbed = perturb(Sums(hits, totals))
    estimate = perturbed.share(perturbed.sources[0].pooled([0]), [[0]], None, int((totals > 0).sum()))
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
