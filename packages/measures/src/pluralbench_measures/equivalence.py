"""Tests that two paired means are equivalent within a margin or differ, with their power and sample sizes.

Equivalence is tested by two one-sided t-tests (Schuirmann, 1987), because a difference that is not significant does not
show equality. The power of both tests is exact for normal differences (Owen, 1965; Phillips, 1990).
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np

from pluralbench_measures.bootstrap import Array
from pluralbench_measures.errors import MeasuresError

ALPHA = 0.05
MOST_PAIRS = 100_000
NODES = 200  # of the integral over the estimated variance


@dataclass(frozen=True)
class PairedTest:
    """A test of independent paired differences, with the interval of 1 - 2 alpha (equivalence) or 1 - alpha.

    `sd`, `low`, `high` and `p_value` are None if there are fewer than two differences or all are equal.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    p_value: float | None


def equivalence_test(differences: Sequence[float], margin: float, alpha: float = ALPHA) -> PairedTest:
    """Test by two one-sided t-tests that the mean difference lies between -margin and margin.

    The p-value is the larger one of the two tests. The means are equivalent at level alpha if it is below alpha or,
    which is the same, if the interval of 1 - 2 alpha lies within the margin.

    Raises:
        MeasuresError: The margin is not above 0.
    """
    from scipy.stats import ttest_1samp

    if not margin > 0:
        raise MeasuresError(f"The equivalence margin must be above 0; it is {margin:g}.")
    values = np.asarray(differences, dtype=np.float64)
    if not _testable(values):
        return _no_test(values)
    above = ttest_1samp(values, -margin, alternative="greater")
    below = ttest_1samp(values, margin, alternative="less")
    interval = ttest_1samp(values, 0.0).confidence_interval(1 - 2 * alpha)
    return _test_result(values, interval, max(above.pvalue, below.pvalue))


def difference_test(differences: Sequence[float], alpha: float = ALPHA) -> PairedTest:
    """Test by a two-sided paired t-test that the mean difference is not 0."""
    from scipy.stats import ttest_1samp

    values = np.asarray(differences, dtype=np.float64)
    if not _testable(values):
        return _no_test(values)
    result = ttest_1samp(values, 0.0)
    return _test_result(values, result.confidence_interval(1 - alpha), result.pvalue)


def equivalence_power(
    standard_error: float, degrees: float, margin: float, difference: float = 0.0, alpha: float = ALPHA
) -> float:
    """Compute the power of the equivalence test.

    `standard_error` is that of the mean difference, such as sd / sqrt(n) of n pairs, with n - 1 `degrees` of freedom.
    """
    from scipy.special import gammainc, gammaincinv, ndtr, stdtrit

    critical = float(stdtrit(degrees, 1 - alpha))
    # The probability of an estimated variance for which some mean still passes the test.
    passing = float(gammainc(degrees / 2, degrees / 2 * (margin / standard_error / critical) ** 2))
    nodes, weights = _nodes()
    variance = gammaincinv(degrees / 2, passing * nodes) * 2 / degrees  # relative to the true variance
    inner = margin / standard_error - critical * np.sqrt(variance)
    shift = difference / standard_error
    return float(passing * weights @ (ndtr(inner - shift) - ndtr(-inner - shift)))


@cache
def _nodes() -> tuple[Array, Array]:
    """The nodes and weights of Gauss-Legendre quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def difference_power(standard_error: float, degrees: float, difference: float, alpha: float = ALPHA) -> float:
    """Compute the power of the two-sided t-test at a true difference. Arguments as in `equivalence_power`."""
    from scipy.stats import nct, t

    critical, shift = float(t.ppf(1 - alpha / 2, degrees)), abs(difference) / standard_error
    if shift > critical + 30:  # scipy's tails are inaccurate there
        return 1.0
    return float(nct.sf(critical, degrees, shift) + nct.cdf(-critical, degrees, shift))


def paired_sd(between: float, within: float, raters: int) -> float:
    """Compute the standard deviation of differences that are each a mean over raters.

    It is made of those of the pairs' true differences (`between`) and of one rater's around the true one (`within`).
    """
    return sqrt(between**2 + within**2 / raters)


def pairs_for_equivalence(
    sd: float, margin: float, *, difference: float = 0.0, power: float = 0.8, alpha: float = ALPHA
) -> int | None:
    """Compute the smallest number of pairs that shows equivalence with probability `power`.

    `sd` is the standard deviation of the differences, and `difference` the true one. None: the number exceeds
    `MOST_PAIRS`, or the true difference is not within the margin.
    """
    if abs(difference) >= margin:
        return None
    return _sample_size(lambda n: equivalence_power(sd / sqrt(n), n - 1, margin, difference, alpha), power)


def pairs_for_difference(sd: float, difference: float, *, power: float = 0.8, alpha: float = ALPHA) -> int | None:
    """Compute the smallest number of pairs that shows a difference with power `power`; None above `MOST_PAIRS`."""
    if not difference:
        return None
    return _sample_size(lambda n: difference_power(sd / sqrt(n), n - 1, difference, alpha), power)


def _sample_size(power_of: Callable[[int], float], power: float) -> int | None:
    """The smallest number from 2 on with enough power, which grows with the number."""
    size = bisect_left(range(MOST_PAIRS + 1), power, lo=2, key=power_of)
    return size if size <= MOST_PAIRS else None


def _testable(values: Array) -> bool:
    return len(values) > 1 and bool(np.ptp(values) > 0)


def _no_test(values: Array) -> PairedTest:
    return PairedTest(len(values), float(values.mean()) if len(values) else None, None, None, None, None)


def _test_result(values: Array, interval: tuple[float, float], p_value: float) -> PairedTest:
    low, high = (float(bound) for bound in interval)
    return PairedTest(len(values), float(values.mean()), float(values.std(ddof=1)), low, high, float(p_value))
