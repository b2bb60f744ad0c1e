"""How far people agree: shares with their intervals, and Krippendorff's alpha."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from pluralbench_measures.bootstrap import Sums
from pluralbench_measures.intervals import perturb

Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def share_of(count: int, of: int) -> dict[str, float | None]:
    """A share of independent cases: `count`, `of`, `share`, and `low` and `high`, Wilson's 95 % interval.

    The last three are None where there is nothing to share.
    """
    from scipy.stats import binomtest  # noqa: PLC0415 - half a second that other verbs save

    if not of:
        return {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    interval = binomtest(count, of).proportion_ci(method="wilson")
    low, high = float(interval.low), float(interval.high)
    return {"count": count, "of": of, "share": count / of, "low": low, "high": high}


def clustered_share(counts: Sequence[int], of: Sequence[int]) -> dict[str, float | None]:
    """A share of cases that hang together: `share`, and `low` and `high`, its 95 % interval (see `intervals`).

    counts, of: by cluster. The interval is None for fewer clusters than `intervals.FEWEST`.
    """
    if not sum(of):
        return {"share": None, "low": None, "high": None}
    hits, totals = (np.asarray(values, dtype=np.float64)[:, None] for values in (counts, of))
    tilted = perturb(Sums(hits, totals))
    found = tilted.share(tilted.sources[0].pooled([0]), [[0]], None, int((totals > 0).sum()))
    return {"share": found.value, "low": found.low, "high": found.high}


def krippendorff_alpha(counts: Sequence[Sequence[int]]) -> Mapping[Level, float | None]:
    """Krippendorff's alpha of answers on a scale, by level of measurement.

    counts: for each unit how often each value of the scale was given, the values in order (which only "nominal" does
    not look at) and one step apart (which only "interval" looks at). Units with fewer than two answers do not count.
    None where it is not defined, as where all answers are the same.

    It is one minus the disagreement within units over that expected by chance (Krippendorff, "Computing
    Krippendorff's Alpha-Reliability", 2011): of each unit all ordered pairs of its m answers, each with weight
    1 / (m - 1), against all ordered pairs of answers of all units.
    """
    table = np.array([unit for unit in counts if sum(unit) > 1], dtype=np.float64)
    if not len(table) or (table.sum(0) > 0).sum() < 2:
        return dict.fromkeys(LEVELS)
    given, weights = table.sum(0), 1 / (table.sum(1) - 1)
    seen = (table * weights[:, None]).T @ table - np.diag(weights @ table)
    chance = (np.outer(given, given) - np.diag(given)) / (given.sum() - 1)
    # Two values are as far apart as there are answers between them, half of those at the ends counted, or steps.
    middles, steps = given.cumsum() - given / 2, np.arange(len(given))
    distances: dict[Level, np.ndarray] = {
        "nominal": 1.0 - np.eye(len(given)),
        "ordinal": np.subtract.outer(middles, middles) ** 2,
        "interval": np.subtract.outer(steps, steps) ** 2,
    }
    return {level: float(1 - (seen * apart).sum() / (chance * apart).sum()) for level, apart in distances.items()}
