"""A figure as data: marks in panels, which `pluralbench.reports.figures.draw` draws."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal, NamedTuple

from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural

from pluralbench.metrics.metric import BASELINES as TITLES
from pluralbench.reports.figures.series import RunSeries, Series
from pluralbench.reports.figures.theme import INK, SOFT
from pluralbench.reports.sheets import title_of
from pluralbench.results.numbers import FEW
from pluralbench.results.runs import Run

ACCURACY, DIFFERENCE = "Accuracy (%)", "Difference (points)"
PLAIN = Series("", "", INK, "o", "-")
MEAN = Series("mean", "Mean", INK, "", "-")
LINES = {"coin": ":", "longer": "-", "shorter": "--"}  # what people reach is not on the axes of accuracies
BASELINES = {name: Series(name, TITLES[name].capitalize(), SOFT, "", line) for name, line in LINES.items()}
CHANCE = BASELINES["coin"]
EQUAL = Series("equal", "", SOFT, "", "--")


class Point(NamedTuple):
    """A value and its interval; None if missing. The dot of one over few items or clusters is hollow."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    few: bool = False


class Mark(NamedTuple):
    """A value at a row or column, by its label, or at a number, with an interval if it is a `Point`."""

    at: str | float | Point
    point: Point
    series: Series
    kind: Literal["dot", "bar", "tick"] = "dot"


@dataclass(frozen=True)
class Panel:
    """Marks with a common axis of values.

    Attributes:
        label: Label of the axis of values. Panels with the same one have the same limits.
        other: Label of the other axis.
        lines: Styles of reference lines by value.
        upright: Values are vertical, as on numeric axes.
        joined: Lines connect the dots of a series. Those of a series without a marker are always connected.
        least: Minimum span of the axis of values.
    """

    marks: Sequence[Mark]
    label: str = ACCURACY
    title: str = ""
    other: str = ""
    lines: Mapping[float, str] = field(default_factory=dict)
    upright: bool = False
    joined: bool = False
    log: bool = False
    least: float = 5.0

    @cached_property
    def labels(self) -> list[str]:
        """The rows or columns; none if the axis is numeric."""
        return list(dict.fromkeys(mark.at for mark in self.marks if isinstance(mark.at, str)))

    @property
    def vertical(self) -> bool:
        """Whether values are vertical."""
        return self.upright or not self.labels

    @cached_property
    def slots(self) -> dict[str, list[Series]]:
        """The series side by side in each row."""
        slots: dict[str, dict[Series, None]] = {label: {} for label in self.labels}
        for mark in self.marks:
            if isinstance(mark.at, str) and mark.kind != "tick":
                slots[mark.at][mark.series] = None
        return {label: list(series) for label, series in slots.items()}

    @property
    def most(self) -> int:
        """The number of series in the fullest row."""
        return max(map(len, self.slots.values()), default=1)


@dataclass(frozen=True)
class Chart:
    """A figure, with `across` panels in a row. `draw` explains whiskers, dashes and hollow dots (over few of `few`)."""

    title: str = ""
    panels: Sequence[Panel] = ()
    note: str = ""
    across: int = 1
    few: str = "prompts or users"

    @property
    def marks(self) -> list[Mark]:
        """The marks of all panels."""
        return [mark for panel in self.panels for mark in panel.marks]

    @property
    def empty(self) -> bool:
        """Whether there is no value besides those of references, so that there is nothing to show."""
        return all(mark.point.value is None or mark.kind == "tick" for mark in self.marks)


def point(estimate: Estimate, scale: float = 100.0) -> Point:
    """Convert a number of the metrics to a point, in percent by default."""
    value, low, high = (None if one is None else scale * one for one in (estimate.value, estimate.low, estimate.high))
    return Point(value, low, high, estimate.clusters is not None and estimate.clusters < FEW)


def number(run: Run[Any, Any], metric: str, *, scale: float = 100.0, **dimensions: Any) -> Point:
    """Return the point of a number of a run."""
    return point(run.estimate(metric, **dimensions), scale)


def marks_of(
    models: Sequence[RunSeries], rows: Mapping[str, Mapping[str, Any]], metric: str, *, scale: float = 100.0
) -> list[Mark]:
    """Make a mark of each model in each row, which has the dimensions of its number."""
    return [Mark(row, number(one.run, metric, scale=scale, **of), one) for row, of in rows.items() for one in models]


def bins_of(one: RunSeries, metric: str, predicted: str, least: int) -> list[Mark]:
    """Make a mark of each bin of a run, at its predicted number, and a line where both are equal, from `least` %."""
    marks = [Mark(float(end), Point(float(end)), EQUAL) for end in (least, 100)]
    for name in one.run.names("bin", metric):
        at = number(one.run, predicted, bin=name).value
        marks += [] if at is None else [Mark(at, number(one.run, metric, bin=name), one)]
    return marks


def names(models: Iterable[RunSeries], dimension: str, metric: str = "accuracy", **dimensions: Any) -> list[str]:
    """Return the distinct names of a dimension in the runs' numbers, in order."""
    return list(dict.fromkeys(name for one in models for name in one.run.names(dimension, metric, **dimensions)))


def mean(points: Iterable[Point]) -> float | None:
    """Return the mean of the values that are not missing, or None if all are."""
    present = [one.value for one in points if one.value is not None]
    return fmean(present) if present else None


def by_mean(marks: Iterable[Mark]) -> list[Mark]:
    """Sort marks by the mean of their row, the highest first."""
    every = list(marks)
    means = {row: mean(one.point for one in every if one.at == row) for row in dict.fromkeys(one.at for one in every)}
    return sorted(every, key=lambda one: (means[one.at] is None, -(means[one.at] or 0.0)))


def with_means(marks: Sequence[Mark]) -> list[Mark]:
    """Add a tick at the mean of each row with several values."""
    rows = {row: [one.point for one in marks if one.at == row] for row in dict.fromkeys(one.at for one in marks)}
    return [*marks, *(Mark(row, Point(mean(own)), MEAN, "tick") for row, own in rows.items() if len(own) > 1)]


def which(models: Sequence[RunSeries]) -> str:
    """Describe the models and the benchmark for a title."""
    if not models:
        return ""
    distinct = len({model.name for model in models})
    runs = "" if distinct == len(models) else f"{len(models)} runs of "
    subject = models[0].label if len(models) == 1 else f"{runs}{plural(distinct, 'model')}"
    return f"{subject} on {title_of([model.run for model in models])}"
