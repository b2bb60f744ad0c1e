"""Which of several candidates is best by their rewards: of the first k, and in expectation of any k.

Rewards and values are arrays [candidates], NaN where there is none: a candidate without a reward is never selected.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def best_of_first(rewards: Array, k: int) -> int | None:
    """The place of the highest reward among the first k, the earliest of equal ones; None where none has a reward.

    So the code of Personalized RewardBench selects.
    """
    first = rewards[:k]
    return None if np.isnan(first).all() else int(np.nanargmax(first))


def weights_of_best(rewards: Array, k: int) -> Array:
    """The probability of each candidate to be the best of k that are drawn without replacement: [candidates].

    Among equal rewards chance decides. Candidates without a reward have 0, and are not drawn; where fewer than k are
    left, all of them are drawn. The mean of a value under these weights is the unbiased estimate of its expectation
    under best-of-k, since it is the mean over all subsets of size k. All 0 where no candidate has a reward.
    """
    weights = np.zeros(len(rewards))
    valid = np.flatnonzero(~np.isnan(rewards))
    count = len(valid)
    if not count:
        return weights
    k = min(k, count)
    ascending = valid[np.argsort(rewards[valid], kind="stable")]
    # With `below` others under it, a candidate is the best in comb(below, k - 1) of the subsets.
    chances = np.array([comb(below, k - 1) / comb(count, k) for below in range(count)])
    _, ties = np.unique(rewards[ascending], return_inverse=True)
    weights[ascending] = (np.bincount(ties, chances) / np.bincount(ties))[ties]
    return weights


def expected_value(values: Array, weights: Array) -> float:
    """The mean of the values under the weights; NaN where no value has weight. A missing value is left out."""
    there = ~np.isnan(values) & (weights > 0)
    return float(np.average(values[there], weights=weights[there])) if there.any() else float("nan")
