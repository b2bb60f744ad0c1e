"""Whether rewards are the log-odds that they stand for in a Bradley-Terry model.

The measure is that of CHEEMS's own code: pairs in five equal bins by the difference of their rewards, and in each bin
how far the accuracy is from the sigmoid of the mean difference.
"""

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import Array, ratio

BINS = 5


def bins_of(difference: Array, *, legacy: bool = False) -> NDArray[np.int64]:
    """The bin of each absolute difference of rewards, in `BINS` equal ones from 0 to the largest: [n] to [n].

    The largest is in the last bin; legacy: it is in none (-1), as in the authors' code.
    """
    if not len(difference):
        return np.zeros(0, dtype=np.int64)
    edges = np.linspace(0.0, difference.max(), BINS + 1)
    found = np.searchsorted(edges, difference, side="right") - 1
    return np.where(difference == difference.max(), -1 if legacy else BINS - 1, found).astype(np.int64)


def calibration_error(right: Array, counted: Array, difference: Array) -> Array:
    """Expected calibration error of rewards as log-odds: sums by bin, [..., bins], to [...].

    It is |accuracy - sigmoid(mean difference)| of each bin, weighted by the bin's share of the pairs. right: pairs that
    are right. counted: pairs. difference: the sum of absolute differences of rewards. NaN where there is no pair.
    """
    filled = np.maximum(counted, 1)
    gaps = np.abs(right / filled - 1 / (1 + np.exp(-difference / filled)))
    return ratio((gaps * counted).sum(-1), counted.sum(-1))
