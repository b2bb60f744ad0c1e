"""Calibration of reward differences as log-odds, as the Bradley-Terry model assumes.

The measure is the one in CHEEMS's code. It puts pairs into five equal bins by the difference of their rewards, and
compares the accuracy of each bin with the sigmoid of its mean difference.
"""

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import Array, ratio

BINS = 5


def bins_of(difference: Array, *, legacy: bool = False) -> NDArray[np.int64]:
    """Assign each absolute difference of rewards to one of `BINS` equal bins between 0 and the largest. Shape (n,).

    `legacy` puts the largest difference in no bin (-1), as the authors' code does, instead of in the last one.
    """
    if not len(difference):
        return np.zeros(0, dtype=np.int64)
    edges = np.linspace(0.0, difference.max(), BINS + 1)
    bins = np.searchsorted(edges, difference, side="right") - 1
    return np.where(difference == difference.max(), -1 if legacy else BINS - 1, bins).astype(np.int64)


def calibration_error(right: Array, counted: Array, difference: Array) -> Array:
    """Compute the expected calibration error of rewards as log-odds from sums by bin.

    The error of a bin is |accuracy - sigmoid(mean difference)|, weighted by the bin's share of the pairs. All sums have
    the shape (..., bins).

    Returns:
        The error; NaN if there is no pair. Shape (...).
    """
    filled = np.maximum(counted, 1)
    gaps = np.abs(right / filled - 1 / (1 + np.exp(-difference / filled)))
    return ratio((gaps * counted).sum(-1), counted.sum(-1))
