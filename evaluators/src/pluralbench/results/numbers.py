"""Format numbers of reports: unit, confidence interval, and a mark where the interval rests on few clusters.

The option `z` of the formats prints a small negative number as 0.0, not as -0.0.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate

from pluralbench.metrics.metric import Unit

DASH, DAGGER = "–", "†"
FEW = 10  # an interval over fewer clusters is marked
Kind = Callable[[float], str]
"""Formats a value or a bound in a unit."""


def percent(value: float) -> str:
    """Format a fraction in percent, as "55.5"."""
    return f"{100 * value:z.1f}"


def points(value: float) -> str:
    """Format a difference of fractions in percentage points, as "+1.5"."""
    return f"{100 * value:+z.1f}"


def whole_percent(value: float) -> str:
    """Format a fraction in whole percent, as "55"."""
    return f"{100 * value:z.0f}"


def p_value(value: float) -> str:
    """Format a p-value, as "0.012" or "<0.001"."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


one_digit: Kind = "{:z.1f}".format
two_digits: Kind = "{:z.2f}".format
three_digits: Kind = "{:z.3f}".format
four_digits: Kind = "{:z.4f}".format
signed: Kind = "{:+z.2f}".format
change: Kind = "{:+z.3f}".format
KINDS: dict[Unit, Kind] = {
    "share": percent,
    "difference": points,
    "count": "{:,.0f}".format,
    "number": three_digits,
    "correlation": two_digits,
    "p-value": p_value,
    "points squared": one_digit,
}
"""Format of each unit."""


class Number(NamedTuple):
    """A formatted number; a missing part is the empty string.

    Attributes:
        mark: A dagger if the interval is over few clusters.
    """

    value: str
    low: str = ""
    high: str = ""
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.value} [{self.low}, {self.high}]{self.mark}" if self.low else self.value


def number(estimate: Estimate | float | None, kind: Kind = percent, *, bounds: bool = True) -> Number:
    """Format a number and, with `bounds`, its interval; a missing number is a dash."""
    if not isinstance(estimate, Estimate):
        return Number(DASH if estimate is None else kind(estimate))
    if estimate.value is None:
        return Number(DASH)
    if not bounds or estimate.low is None or estimate.high is None:
        return Number(kind(estimate.value))
    return Number(kind(estimate.value), kind(estimate.low), kind(estimate.high), mark(estimate))


def with_interval(estimate: Estimate, kind: Kind = percent) -> str:
    """Format a number for a sentence, as "55.5 [43.1, 67.0]"; empty where it is missing."""
    return "" if estimate.value is None else str(number(estimate, kind)._replace(mark=""))


def mark(estimate: Estimate) -> str:
    """Return a dagger if the interval is over few clusters; `mark_notes` explains it."""
    return DAGGER if estimate.low is not None and estimate.clusters is not None and estimate.clusters < FEW else ""


def mark_notes(numbers: Iterable[Estimate]) -> Iterator[str]:
    """Explain the daggers at these numbers, if any."""
    clusters = {estimate.clusters or 0 for estimate in numbers if mark(estimate)}
    if clusters:
        low, high = min(clusters), max(clusters)
        yield f"{DAGGER} Wide interval: only {low}{f' to {high}' if high > low else ''} prompts or users."
