"""Whether two paired means are the same within a margin, whether they differ, and how many pairs it takes to show it.

Equivalence is shown by two one-sided t-tests (Schuirmann, 1987): that a difference is not found does not show that
there is none. The power of both tests is exact for normal differences (Owen, 1965; Phillips, 1990).
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
    """A test of paired differences, which are independent of each other.

    n: how many there are. mean, sd: of the differences. low, high: the interval that the test looks at, of 1 - 2 alpha
    for equivalence and 1 - alpha for a difference. p_value: of the test. sd, interval and p-value are None where fewer
    than two differences, or none that differ from each other, leave nothing to test by.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    p_value: float | None


def equivalence_test(differences: Sequence[float], margin: float, alpha: float = ALPHA) -> PairedTest:
    """Two one-sided t-tests that the mean difference is above -margin and below margin; the p-value is the larger one.

    The means are equivalent at level alpha where the p-value is below it, or, what is the same, where the interval of
    1 - 2 alpha lies within the margin. Raises `MeasuresError` for a margin that is not above 0.
    """
    from scipy.stats import ttest_1samp  # noqa: PLC0415 - half a second that other verbs save

    if not margin > 0:
        raise MeasuresError(f"The equivalence margin must be above 0; it is {margin:g}.")
    values = np.asarray(differences, dtype=np.float64)
    if not _testable(values):
        return _untested(values)
    above = ttest_1samp(values, -margin, alternative="greater")
    below = ttest_1samp(values, margin, alternative="less")
    interval = ttest_1samp(values, 0.0).confidence_interval(1 - 2 * alpha)
    return _tested(values, interval, max(above.pvalue, below.pvalue))


def difference_test(differences: Sequence[float], alpha: float = ALPHA) -> PairedTest:
    """The two-sided paired t-test that the mean difference is not 0."""
    from scipy.stats import ttest_1samp  # noqa: PLC0415 - half a second that other verbs save

    values = np.asarray(differences, dtype=np.float64)
    if not _testable(values):
        return _untested(values)
    found = ttest_1samp(values, 0.0)
    return _tested(values, found.confidence_interval(1 - alpha), found.pvalue)


def equivalence_power(
    standard_error: float, degrees: float, margin: float, difference: float = 0.0, alpha: float = ALPHA
) -> float:
    """How likely two one-sided tests show equivalence, where the true difference is `difference`.

    standard_error: the true one of the difference that is estimated, such as sd / sqrt(n) of n pairs. degrees: of
    freedom, n - 1 then.
    """
    from scipy.special import gammainc, gammaincinv, ndtr, stdtrit  # noqa: PLC0415 - a second that other verbs save

    reach = float(stdtrit(degrees, 1 - alpha))
    # Of an estimated variance beyond this, no mean is far enough within the margin.
    most = float(gammainc(degrees / 2, degrees / 2 * (margin / standard_error / reach) ** 2))
    nodes, weights = _nodes()
    variance = gammaincinv(degrees / 2, most * nodes) * 2 / degrees  # in parts of the true one
    inner = margin / standard_error - reach * np.sqrt(variance)
    shift = difference / standard_error
    return float(most * weights @ (ndtr(inner - shift) - ndtr(-inner - shift)))


@cache
def _nodes() -> tuple[Array, Array]:
    """Where an integral from 0 to 1 looks, and the weights there."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def difference_power(standard_error: float, degrees: float, difference: float, alpha: float = ALPHA) -> float:
    """How likely a two-sided t-test finds a difference, where the true one is `difference`. See `equivalence_power`."""
    from scipy.stats import nct, t  # noqa: PLC0415 - half a second that other verbs save

    reach, shift = float(t.ppf(1 - alpha / 2, degrees)), abs(difference) / standard_error
    if shift > reach + 30:  # where scipy's tails give out
        return 1.0
    return float(nct.sf(reach, degrees, shift) + nct.cdf(-reach, degrees, shift))


def paired_sd(between: float, within: float, raters: int) -> float:
    """The standard deviation of differences that are each the mean over `raters`.

    between: of the true differences of pairs. within: of one rater's difference around the true one.
    """
    return sqrt(between**2 + within**2 / raters)


def pairs_for_equivalence(
    sd: float, margin: float, *, difference: float = 0.0, power: float = 0.8, alpha: float = ALPHA
) -> int | None:
    """The fewest pairs by which equivalence is shown with probability `power`; None where no number is enough.

    sd: of the differences. No number is enough where the true difference is not within the margin.
    """
    if abs(difference) >= margin:
        return None
    return _fewest(lambda n: equivalence_power(sd / sqrt(n), n - 1, margin, difference, alpha), power)


def pairs_for_difference(sd: float, difference: float, *, power: float = 0.8, alpha: float = ALPHA) -> int | None:
    """The fewest pairs by which a difference is found with probability `power`; None where no number is enough."""
    if not difference:
        return None
    return _fewest(lambda n: difference_power(sd / sqrt(n), n - 1, difference, alpha), power)


def _fewest(power_of: Callable[[int], float], power: float) -> int | None:
    """The least number from 2 on whose power, which grows with it, is enough."""
    found = bisect_left(range(MOST_PAIRS + 1), power, lo=2, key=power_of)
    return found if found <= MOST_PAIRS else None


def _testable(values: Array) -> bool:
    return len(values) > 1 and bool(np.ptp(values) > 0)


def _untested(values: Array) -> PairedTest:
    return PairedTest(len(values), float(values.mean()) if len(values) else None, None, None, None, None)


def _tested(values: Array, interval: tuple[float, float], p_value: float) -> PairedTest:
    low, high = (float(bound) for bound in interval)
    return PairedTest(len(values), float(values.mean()), float(values.std(ddof=1)), low, high, float(p_value))
