"""Write reports in each output format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import markdown_table
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs.console import clean, terminal_json
from pluralbench_tables import csv_text
from rich.console import Group, RenderableType
from rich.text import Text

from pluralbench.data.metric_key import DIMENSIONS
from pluralbench.reports import Format
from pluralbench.reports.definitions import in_sentences, where_defined
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.latex import Grid, in_latex
from pluralbench.reports.layout import lay_out, wrapped
from pluralbench.reports.tables import Table, marks_in
from pluralbench.results.runs import Run


class Report(NamedTuple):
    """The content of a report, or of a section of a page.

    Attributes:
        tables: Tables for reading.
        notes: Sentences on these runs that change how the numbers are read, and counts beside them.
        frame: The same numbers for programs; empty in a section of a page.
        rows: The nested rows of JSON. Default: those of `frame`.
        title: Heading of the section.
        sentences: The result in words.
        charts: Figures, by file stem.
        parts: Sections within it.
        runs: Runs whose provenance a page shows.
        definitions: What headings and rows of the tables mean, by term; a terminal shows only where to read them.
    """

    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    frame: pl.DataFrame = pl.DataFrame()
    rows: Sequence[dict[str, Any]] | None = None
    title: str = ""
    sentences: Sequence[str] = ()
    charts: Mapping[str, Chart] = {}
    parts: Sequence["Report"] = ()
    runs: Sequence[Run[Any, Any]] = ()
    definitions: Mapping[str, str] = {}

    @property
    def texts(self) -> list[str]:
        """The notes, and the definitions as sentences."""
        return [*self.notes, *in_sentences(self.definitions)]


def long_frame(numbers: Iterable[tuple[Path, pl.DataFrame]]) -> pl.DataFrame:
    """Concatenate the long frames of directories; the first column, `run`, has the directory."""
    frames = [frame.select(pl.lit(str(path)).alias("run"), pl.all()) for path, frame in numbers]
    return without_empty_dimensions(pl.concat(frames))


def without_empty_dimensions(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the dimensions that no number of a metrics frame has."""
    own = [name for name in DIMENSIONS if name in frame.columns]
    return frame.drop(name for name in own if frame[name].null_count() == frame.height)


def format_report(report: Report, form: Format, width: int | None) -> str | Group:
    """Write a report in an output format.

    Args:
        width: Columns of the terminal; None for as many as needed.
    """
    marks = [*marks_in(report.tables)]
    match form:
        case "json":
            rows = report.frame.to_dicts() if report.rows is None else report.rows
            return terminal_json(rows)
        case "csv":
            return csv_text(report.frame)
        case "markdown":
            return "\n\n".join([*map(in_markdown, report.tables), listed([*report.texts, *marks])])
        case "latex":
            return in_latex([_grid(table) for table in report.tables], [clean(text) for text in report.texts])
        case "table":
            texts = (*report.notes, *marks, *where_defined(report.definitions))
            return Group(*render_tables(report.tables, width), *(wrapped(clean(text), width) for text in texts))


def render_tables(tables: Sequence[Table], width: int | None) -> Iterator[RenderableType]:
    """Lay out tables for a terminal, with an empty line below each."""
    for table in tables:
        yield from lay_out(table, width)
        yield Text("")


def listed(sentences: Iterable[str]) -> str:
    """Write a list of sentences in Markdown."""
    return "\n".join(f"- {escape_markdown(clean(sentence))}" for sentence in sentences)


def in_markdown(table: Table) -> str:
    """Write a table in Markdown, below its title."""
    return f"**{escape_markdown(clean(table.title))}**\n\n{markdown_table(texts_of(table))}"


def texts_of(table: Table) -> pl.DataFrame:
    """Return a table as a frame of texts; the first columns have the groups, if any, and the row names."""
    groups = bool(table.groups)
    rows = [
        [clean(text) for text in (*[row.group] * groups, row.name, *map(str, cells))]
        for row, cells in zip(table.rows, table.cells(), strict=True)
    ]
    heads = (*[table.groups] * groups, table.names, *(column.text for column in table.columns))
    return pl.DataFrame(rows, dict.fromkeys(_unique(heads), pl.String), orient="row")


def _unique(heads: Sequence[str]) -> Iterator[str]:
    """Headings, those that are repeated with a colon."""
    used: set[str] = set()
    for text in heads:
        name = clean(text)
        while name in used:
            name += ":"
        used.add(name)
        yield name


def _grid(table: Table) -> tuple[Table, Grid, int]:
    """A table with its texts and the number of its columns of names."""
    frame = texts_of(table)
    title = table._replace(title=clean(table.title))
    return title, [frame.columns, *frame.rows()], frame.width - len(table.columns)
