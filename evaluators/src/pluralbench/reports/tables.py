"""Reports and their tables as data, before they are formatted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.paired import RankInterval

from pluralbench.data.metric_key import DIMENSIONS, MetricKey
from pluralbench.results.numbers import Kind, Number, mark_notes, number, percent
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench.reports.figures.chart import Chart

Value = Estimate | RankInterval | float | int | str | None


class Column(NamedTuple):
    """A column of a report.

    Attributes:
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
    """A row of a report. Baselines are quiet, and have the runs on whose items they are."""

    name: str
    values: Sequence[Value]
    quiet: bool = False
    group: str = ""
    runs: Sequence[Run] = ()


class Table(NamedTuple):
    """A table of a report, with the headings of its row names and of its groups of rows."""

    title: str
    names: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    groups: str = ""

    def cells(self) -> list[list[Number]]:
        """Format the values, row by row: texts unchanged, integers as counts."""
        return [[format_value(*pair) for pair in zip(self.columns, row.values, strict=True)] for row in self.rows]


class Report(NamedTuple):
    """The content of a report, or of a section of a page.

    Attributes:
        notes: Sentences on these runs that change how the numbers are read, and counts beside them.
        frame: The same numbers for programs; empty in a section of a page.
        rows: The nested rows of JSON. Default: those of `frame`.
        sentences: The result in words.
        charts: Figures, by file stem.
        runs: Runs whose provenance a page shows.
        definitions: What headings and rows of the tables mean, by term; a terminal shows only where to read them.
    """

    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    frame: pl.DataFrame = pl.DataFrame()
    rows: Sequence[dict[str, Any]] | None = None
    title: str = ""
    sentences: Sequence[str] = ()
    charts: Mapping[str, "Chart"] = {}
    parts: Sequence["Report"] = ()
    runs: Sequence[Run[Any, Any]] = ()
    definitions: Mapping[str, str] = {}

    @property
    def texts(self) -> list[str]:
        """The notes, and the definitions as sentences."""
        return [*self.notes, *in_sentences(self.definitions)]


def in_sentences(definitions: Mapping[str, str]) -> list[str]:
    """Write each definition as a sentence."""
    return [f"{term[0].upper()}{term[1:]}: {text}" for term, text in definitions.items()]


def long_frame(numbers: Iterable[tuple[Path, pl.DataFrame]]) -> pl.DataFrame:
    """Concatenate the long frames of directories; the first column, `run`, has the directory."""
    frames = [frame.select(pl.lit(str(path)).alias("run"), pl.all()) for path, frame in numbers]
    return without_empty_dimensions(pl.concat(frames))


def without_empty_dimensions(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the dimensions that no number of a metrics frame has."""
    own = [name for name in DIMENSIONS if name in frame.columns]
    return frame.drop(name for name in own if frame[name].null_count() == frame.height)


def upright(source: Table, names: str) -> Table:
    """Return a table of one row as a table of one column, which is read more easily if it has many numbers."""
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
