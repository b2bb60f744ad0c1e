"""Selection of the best candidate by reward: of the first k, and in expectation over all sets of k.

Rewards and values have shape (candidates,). A missing one is NaN; a candidate without a reward is never selected.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def best_of_first(rewards: Array, k: int) -> int | None:
    """Return the index of the highest reward among the first k candidates.

    The first of equal rewards wins, as in the code of Personalized RewardBench. None if no candidate has a reward.
    """
    first = rewards[:k]
    return None if np.isnan(first).all() else int(np.nanargmax(first))


def weights_of_best(rewards: Array, k: int) -> Array:
    """Return the probability of each candidate to be the best of k drawn without replacement. Shape (candidates,).

    Ties are broken at random. Candidates without a reward are not drawn and get weight 0; if fewer than k remain, all
    of them are drawn. The mean of a value under these weights is the unbiased estimate of its expectation under
    best-of-k, since it is the mean over all subsets of size k. All weights are 0 if no candidate has a reward.
    """
    weights = np.zeros(len(rewards))
    valid = np.flatnonzero(~np.isnan(rewards))
    count = len(valid)
    if not count:
        return weights
    k = min(k, count)
    ascending = valid[np.argsort(rewards[valid], kind="stable")]
    # A candidate with `below` lower rewards is the best of comb(below, k - 1) subsets.
    chances = np.array([comb(below, k - 1) / comb(count, k) for below in range(count)])
    _, ties = np.unique(rewards[ascending], return_inverse=True)
    weights[ascending] = (np.bincount(ties, chances) / np.bincount(ties))[ties]
    return weights


def expected_value(values: Array, weights: Array) -> float:
    """Return the weighted mean of the values without NaN; NaN if no value has a weight."""
    used = ~np.isnan(values) & (weights > 0)
    return float(np.average(values[used], weights=weights[used])) if used.any() else float("nan")
