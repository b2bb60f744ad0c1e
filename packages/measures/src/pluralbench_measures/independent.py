"""The weighted mean of independent estimates, such as accuracies on different benchmarks, with an interval.

The interval comes from those of the estimates by the method of variance estimates recovery (MOVER; Zou & Donner 2008,
Stat. Med. 27:1693): the distance of a bound from the mean is the root of the sum of the squared weighted distances of
the estimates' bounds. Intervals that are not symmetric, such as those of shares near 1, keep their shape, and a mean of
shares stays between 0 and 1.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import fsum

from pluralbench_measures.bootstrap import Estimate

RECOVERED = "recovered"
"""The method of these intervals."""


def independent_mean(
    estimates: Sequence[Estimate], weights: Sequence[float] | None = None, data: Sequence[Hashable] | None = None
) -> Estimate:
    """Compute the weighted mean of independent estimates.

    Args:
        estimates: The estimates.
        weights: A positive weight for each; they need not sum to 1. Default: equal weights.
        data: What data each is of. Those of the same data are taken to vary together, and count once in `n` and
            `clusters`. Default: each is of its own.

    Returns:
        The mean, which has no value if an estimate has none or there are none, and no interval if an estimate has none.
        `n` and `clusters` are sums. The mean of one estimate is that estimate.
    """
    if len(estimates) == 1:
        return estimates[0]
    weights = [1.0] * len(estimates) if weights is None else weights
    if data is not None and len({*data}) < len(data):
        groups = [[at for at, own in enumerate(data) if own == label] for label in dict.fromkeys(data)]
        parts = [_together([estimates[at] for at in group], [weights[at] for at in group]) for group in groups]
        return independent_mean(parts, [fsum(weights[at] for at in group) for group in groups])
    values = [one.value for one in estimates if one.value is not None]
    if not estimates or len(values) < len(estimates):
        return Estimate(None)
    total = fsum(weights)
    mean = fsum(weight * value for weight, value in zip(weights, values, strict=True)) / total
    n, clusters = _sum([one.n for one in estimates]), _sum([one.clusters for one in estimates])
    lows, highs = (
        [bound for one in estimates if (bound := getattr(one, side)) is not None] for side in ("low", "high")
    )
    if min(len(lows), len(highs)) < len(estimates):
        return Estimate(mean, n=n, clusters=clusters)
    below, above = (
        fsum((weight * (bound - value)) ** 2 for weight, bound, value in zip(weights, bounds, values, strict=True))
        ** 0.5
        / total
        for bounds in (lows, highs)
    )
    return Estimate(mean, mean - below, mean + above, n, clusters, RECOVERED)


def _together(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """The weighted mean of estimates of the same data, whose bounds are the means of theirs."""

    def mean(values: Sequence[float | None]) -> float | None:
        pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
        return fsum(value * weight for value, weight in pairs) / fsum(weights) if len(pairs) == len(weights) else None

    value, low, high = (mean([getattr(one, name) for one in estimates]) for name in ("value", "low", "high"))
    return replace(max(estimates, key=lambda one: one.n or 0), value=value, low=low, high=high)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
