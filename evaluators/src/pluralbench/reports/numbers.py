"""How a report writes a number: in its unit, with its interval, and marked where that is over few prompts or users."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate

DASH, DAGGER = "–", "†"
FEW = 10  # clusters under which an interval is marked
Kind = Callable[[float], str]
"""Writes a value and its bounds in a unit."""


def percent(value: float) -> str:
    """A share in per cent, as "55.5"."""
    return f"{100 * value:.1f}"


def points(value: float) -> str:
    """A difference of shares in points, as "+1.5"."""
    return f"{100 * value:+.1f}"


def whole_percent(value: float) -> str:
    """A share in per cent, as "55"."""
    return f"{100 * value:.0f}"


def p_value(value: float) -> str:
    """A p-value, as "0.012" or "<0.001"."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


two_digits: Kind = "{:.2f}".format
three_digits: Kind = "{:.3f}".format
four_digits: Kind = "{:.4f}".format
signed: Kind = "{:+.2f}".format
change: Kind = "{:+.3f}".format


class Number(NamedTuple):
    """A number as texts, each empty where it is missing. mark: that its interval is over few clusters."""

    value: str
    low: str = ""
    high: str = ""
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.value} [{self.low}, {self.high}]{self.mark}" if self.low else self.value


def number(found: Estimate | float | None, kind: Kind = percent, *, bounds: bool = True) -> Number:
    """A number with its interval, or without bounds alone; a dash where it is missing."""
    if not isinstance(found, Estimate):
        return Number(DASH if found is None else kind(found))
    if found.value is None:
        return Number(DASH)
    if not bounds or found.low is None or found.high is None:
        return Number(kind(found.value))
    return Number(kind(found.value), kind(found.low), kind(found.high), mark(found))


def with_interval(found: Estimate, kind: Kind = percent) -> str:
    """A number in a sentence, as "55.5 [43.1, 67.0]"; an empty text where it is missing."""
    return "" if found.value is None else str(number(found, kind)._replace(mark=""))


def mark(found: Estimate) -> str:
    """A dagger where an interval is over few clusters, which `mark_notes` explain."""
    return DAGGER if found.low is not None and found.clusters is not None and found.clusters < FEW else ""


def mark_notes(numbers: Iterable[Estimate]) -> Iterator[str]:
    """What the daggers at some numbers mean."""
    clusters = {found.clusters or 0 for found in numbers if mark(found)}
    if clusters:
        low, high = min(clusters), max(clusters)
        yield f"{DAGGER} Wide, since it is over only {low}{f' to {high}' if high > low else ''} prompts or users."
