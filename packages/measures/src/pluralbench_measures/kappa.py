"""Cohen's kappa: how far two raters agree beyond what chance alone would make them."""

from collections.abc import Sequence

import numpy as np

from pluralbench_measures.bootstrap import Estimate


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> Estimate:
    """Kappa of two raters' labels of the same items, with its interval by the asymptotic variance.

    The value is None where kappa is undefined, since both give one same label to all; the interval is None where its
    variance is undefined.
    """
    from statsmodels.stats.inter_rater import cohens_kappa as kappa_of  # noqa: PLC0415 - two seconds that `--help` saves

    labels = sorted({*first, *second})
    table = np.zeros((len(labels), len(labels)))
    for one, other in zip(first, second, strict=True):
        table[labels.index(one), labels.index(other)] += 1
    if len(labels) < 2:
        return Estimate(None, n=len(first))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = kappa_of(table)
    bounds = [float(found.kappa_low), float(found.kappa_upp)]
    low, high = bounds if np.isfinite(bounds).all() else (None, None)
    return Estimate(float(found.kappa), low, high, len(first), method=None if low is None else "asymptotic")
