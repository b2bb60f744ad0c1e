"""Ranks of several models that say which of them cannot be told apart, from the intervals of their differences."""

from collections.abc import Mapping, Sequence
from math import hypot
from typing import NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.paired import holm

Pair = tuple[int, int]


class RankInterval(NamedTuple):
    """The ranks that a model may have. best: one more than the models that are surely better; 1 is the first.

    worst: the number of models less those that are surely worse.
    """

    best: int
    worst: int


def ranks(models: int, differences: Mapping[Pair, Estimate]) -> list[RankInterval]:
    """The ranks of so many models; those that cannot be told apart share the best one.

    differences: by (first, second), numbered from 0, the second one's value less that of the first, with its interval.
    Two models are told apart where Holm's adjustment over all these pairs leaves p under 5 %, so that all ranks hold
    together with 95 % confidence (Mogstad et al. 2024, Inference for Ranks). A pair that is not there is not
    told apart.
    """
    better = [0] * models
    worse = [0] * models
    adjusted = holm([p_of(found) for found in differences.values()])
    for ((first, second), found), p in zip(differences.items(), adjusted, strict=True):
        if found.value is not None and p is not None and p < 1 - CONFIDENCE:
            up, down = (second, first) if found.value > 0 else (first, second)
            better[down] += 1
            worse[up] += 1
    return [RankInterval(1 + above, models - below) for above, below in zip(better, worse, strict=True)]


def p_of(difference: Estimate) -> float | None:
    """The two-sided p-value of no difference that belongs to its interval; None without an interval.

    Under 5 % where the interval leaves out 0. The distance to the bound that is nearer to 0 is taken for so many
    standard errors as the interval has by Student's t.
    """
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 - two seconds that `--help` saves

    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return None
    half = value - low if value > 0 else high - value
    degrees = max((difference.clusters or 0) - 1, 1)
    if half <= 0:
        return 1.0 if value == 0 else 0.0
    quantile = float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
    return float(2 * stdtr(degrees, -quantile * abs(value) / half))


def mean_of_independent(numbers: Sequence[Estimate]) -> Estimate:
    """The mean of numbers from different data, with an interval where each has one; nothing where one is missing.

    The distances to the bounds add up as those of independent numbers do (MOVER: Zou and Donner 2008).
    """
    values = [one.value for one in numbers if one.value is not None]
    if not numbers or len(values) < len(numbers):
        return Estimate(None)
    mean = sum(values) / len(values)
    clusters = [one.clusters for one in numbers if one.clusters is not None]
    together = sum(clusters) if len(clusters) == len(numbers) else None
    below = [one.value - one.low for one in numbers if one.value is not None and one.low is not None]
    above = [one.high - one.value for one in numbers if one.value is not None and one.high is not None]
    if len(below) < len(numbers) or len(above) < len(numbers):
        return Estimate(mean, clusters=together)
    return Estimate(mean, mean - hypot(*below) / len(values), mean + hypot(*above) / len(values), None, together)
