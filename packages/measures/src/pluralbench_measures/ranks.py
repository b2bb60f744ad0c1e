"""Rank intervals of several models, from the intervals of their differences."""

from collections.abc import Mapping
from typing import NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.paired import holm, interval_p_value

Pair = tuple[int, int]


class RankInterval(NamedTuple):
    """The confidence interval of a model's rank; rank 1 is the best.

    Attributes:
        best: One plus the number of models that are significantly better.
        worst: The number of models minus those that are significantly worse.
    """

    best: int
    worst: int


def ranks(models: int, differences: Mapping[Pair, Estimate]) -> list[RankInterval]:
    """Compute rank intervals that hold jointly with 95 % confidence (Mogstad et al. 2024, Inference for Ranks).

    Args:
        models: Number of models.
        differences: By pair (first, second) of models, numbered from 0, the value of the second minus that of the
            first, with its interval. Missing pairs do not differ.

    Returns:
        The rank interval of each model.
    """
    better = [0] * models
    worse = [0] * models
    for up, down in distinct_pairs(differences):
        better[down] += 1
        worse[up] += 1
    return [RankInterval(1 + above, models - below) for above, below in zip(better, worse, strict=True)]


def distinct_pairs(differences: Mapping[Pair, Estimate]) -> list[Pair]:
    """List the pairs of models that differ significantly: p is below 5 % after Holm's adjustment over all pairs.

    Args:
        differences: See `ranks`.

    Returns:
        The pairs, the better model first.
    """
    adjusted = holm([interval_p_value(difference) for difference in differences.values()])
    pairs = []
    for ((first, second), difference), p in zip(differences.items(), adjusted, strict=True):
        if difference.value is not None and p is not None and p < 1 - CONFIDENCE:
            pairs.append((second, first) if difference.value > 0 else (first, second))
    return pairs
