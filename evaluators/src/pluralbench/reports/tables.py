"""A table of a report as data: columns with the kind of their numbers, and rows of values."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.numbers import Kind, Number, mark_notes, number, percent

Value = Estimate | float | int | str | None


class Column(NamedTuple):
    """What is above a column, and how its numbers are written.

    bounds: with their intervals. part: it may become a row where the columns do not fit beside each other.
    """

    text: str
    kind: Kind = percent
    bounds: bool = True
    part: bool = False


class Row(NamedTuple):
    """A row. quiet: it is no result, but what results are held against. group: the rows that it stands with."""

    name: str
    values: Sequence[Value]
    quiet: bool = False
    group: str = ""


class Table(NamedTuple):
    """A title, what names and groups of rows are of, columns, and rows."""

    title: str
    names: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    groups: str = ""

    def cells(self) -> list[list[Number]]:
        """The values as they are shown, row by row: texts as they are, integers as counts."""
        return [[shown(*pair) for pair in zip(self.columns, row.values, strict=True)] for row in self.rows]


def shown(column: Column, value: Value) -> Number:
    """A value as it stands in a column."""
    if isinstance(value, str | int):
        return Number(value if isinstance(value, str) else f"{value:,}")
    return number(value, column.kind, bounds=column.bounds)


def marks_in(tables: Iterable[Table]) -> Iterator[str]:
    """What the marks at the numbers of some tables mean."""
    yield from mark_notes(
        value
        for table in tables
        for row in table.rows
        for column, value in zip(table.columns, row.values, strict=True)
        if column.bounds and isinstance(value, Estimate)
    )
