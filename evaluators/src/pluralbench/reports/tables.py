"""Tables of reports as data, before they are formatted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.paired import RankInterval

from pluralbench.data.metric_key import MetricKey
from pluralbench.results.numbers import Kind, Number, mark_notes, number, percent
from pluralbench.results.runs import Run

Value = Estimate | RankInterval | float | int | str | None


class Column(NamedTuple):
    """A column of a report.

    Attributes:
        text: The heading.
        kind: Formats the numbers.
        bounds: Show the confidence intervals.
        part: It is one of several parts or results; a page shows it without a bar.
        key: Name of the number that a run has in it. Default: it is not a number of a run's metrics.
    """

    text: str
    kind: Kind = percent
    bounds: bool = True
    part: bool = False
    key: MetricKey = MetricKey("")

    @property
    def name(self) -> str:
        """Name in JSON: the metric, or the heading of a part."""
        return self.text if self.part else self.key.metric


class Row(NamedTuple):
    """A row of a report.

    Attributes:
        quiet: The row is a baseline and is shown dimmed.
        group: Name of the group of rows that it belongs to.
        runs: The runs that its numbers are of; a baseline has those on whose items it is.
    """

    name: str
    values: Sequence[Value]
    quiet: bool = False
    group: str = ""
    runs: Sequence[Run] = ()


class Table(NamedTuple):
    """A table of a report.

    Attributes:
        names: Heading of the column of row names.
        groups: Heading of the column of groups.
    """

    title: str
    names: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    groups: str = ""

    def cells(self) -> list[list[Number]]:
        """Format the values, row by row: texts unchanged, integers as counts."""
        return [[format_value(*pair) for pair in zip(self.columns, row.values, strict=True)] for row in self.rows]


def upright(source: Table, names: str) -> Table:
    """Return a table of one row as a table of one column, which is read more easily if it has many numbers.

    Args:
        names: Heading of the column of row names.
    """
    if len(source.rows) != 1:
        return source
    (row,) = source.rows
    rows = [Row(column.text, [value]) for column, value in zip(source.columns, row.values, strict=True)]
    return Table(source.title, names, [source.columns[0]._replace(text=row.name)], rows)


def format_value(column: Column, value: Value) -> Number:
    """Format a value of a column."""
    if isinstance(value, RankInterval):
        return Number(f"{value.best}–{value.worst}" if value.worst > value.best else str(value.best))
    if isinstance(value, str | int):
        return Number(value if isinstance(value, str) else f"{value:,}")
    return number(value, column.kind, bounds=column.bounds)


def marks_in(tables: Iterable[Table]) -> Iterator[str]:
    """Explain the marks at the numbers of these tables, if any."""
    yield from mark_notes(
        value
        for table in tables
        for row in table.rows
        for column, value in zip(table.columns, row.values, strict=True)
        if column.bounds and isinstance(value, Estimate)
    )
