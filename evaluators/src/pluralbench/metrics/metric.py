"""What a metric is."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.metric_key import MetricKey

if TYPE_CHECKING:
    import polars as pl

    from pluralbench.metrics.decided import Decided

Unit = Literal["share", "difference", "count", "number", "correlation", "p-value", "points squared"]
"""share: 0 to 1, in percent in tables. difference: of two shares, in percentage points in tables."""


START = "start"
"""Value of the dimension `policy` for the policy before `optimize`."""
PEOPLE = "people"
"""Baseline of benchmarks with votes of people: what one of them reaches."""
BASELINES = {"coin": "coin", "longer": "longer answer", "shorter": "shorter answer", PEOPLE: "people"}
"""Baselines, with their names in reports."""

OUTCOME_COUNTS = ("wins", "losses", "ties", "invalid", "dropped", "equal")
"""Metrics that count decisions by outcome, in the order of `data.decisions.OUTCOMES`."""
DECIDED = OUTCOME_COUNTS[:4]
"""Counts of the decisions that count in an accuracy."""
SHOWN_COUNTS = (*OUTCOME_COUNTS[2:], "truncated")
"""Counts in tables of models."""

Numbers = Iterator[tuple[MetricKey, Estimate]]
"""Named numbers, as metrics yield them."""


class Metric(NamedTuple):
    """A number of runs.

    Attributes:
        name: Name in `metrics.json`, in Python and in `metrics` of benchmark files.
        unit: Unit of the value.
        definition: What it is, as a sentence for the page of metrics and the JSON Schema.
        dimensions: Sets of dimensions that its numbers can have, each joined by spaces; "" is the run as a whole.
        title: Heading in tables. Default: the name in words.
        part_of_overall: The overall number is computed from it.
        compute: Yields its numbers, and those of other metrics with the same function. None if a command other than
            `score` and the judges computes it.
        optional: Only benchmarks whose description names it have it.
        of_texts: It is computed from texts, which a run does not contain: from items, or from calls.
        in_tables: Tables of models have a column of it, and detailed tables a column for each part.
        terms: Definitions of headings and rows of the tables that show it, by term.
        check: Raises `DataError` for items of a location of which it cannot be computed. None: all have it.
        note: How a note on a count begins, the noun for one, and that for several if it is not the first with an s.
    """

    name: str
    unit: Unit
    definition: str
    dimensions: tuple[str, ...] = ("",)
    title: str = ""
    part_of_overall: bool = False
    compute: "Callable[[Decided], Numbers] | None" = None
    optional: bool = False
    of_texts: bool = False
    in_tables: bool = False
    terms: Mapping[str, str] = {}
    check: "Callable[[pl.DataFrame, str], None] | None" = None
    note: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Heading in tables."""
        return self.title or self.name.replace("_", " ")


def computed_by(compute: "Callable[[Decided], Numbers]", *metrics: Metric) -> tuple[Metric, ...]:
    """Return metrics whose numbers one function yields."""
    return tuple(metric._replace(compute=compute) for metric in metrics)


def with_baseline(numbers: Iterable[tuple[MetricKey, Estimate]], baseline: str) -> Numbers:
    """Name numbers as those of a baseline."""
    for key, estimate in numbers:
        yield key._replace(baseline=baseline), estimate
