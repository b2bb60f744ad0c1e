"""What a report says in each form: for people as a table, Markdown or LaTeX, for programs as JSON or CSV."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import markdown_table
from rich.console import Group, RenderableType
from rich.text import Text
from tabulate import tabulate

from pluralbench.reports import Format
from pluralbench.reports.layout import clean, lay_out, wrapped
from pluralbench.reports.tables import Table, marks_in

STARTS_A_ROW = re.compile(r"(?m)^ ([\[*])")  # what LaTeX would take for an argument of the row's end before it


class Report(NamedTuple):
    """What a report says. tables, notes: for people. frame: for programs; rows: the same where JSON nests it."""

    tables: Sequence[Table]
    notes: Sequence[str]
    frame: pl.DataFrame
    rows: Sequence[dict[str, Any]] | None = None


def long_frame(numbers: Iterable[tuple[Path, pl.DataFrame]]) -> pl.DataFrame:
    """The long frames of some directories in one, each row with its directory in front."""
    return pl.concat([frame.select(pl.lit(str(path)).alias("run"), pl.all()) for path, frame in numbers])


def written(report: Report, form: Format, width: int | None) -> str | Group:
    """The report in a form. width: columns of the terminal, None for as many as it needs."""
    notes = [clean(note) for note in (*report.notes, *marks_in(report.tables))]
    match form:
        case "json":
            rows = report.frame.to_dicts() if report.rows is None else report.rows
            return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)
        case "csv":
            texts = pl.col(pl.String)  # a spreadsheet takes those that begin so for formulas
            return report.frame.with_columns(
                pl.when(texts.str.contains(r"^[=+@\t\r-]")).then("'" + texts).otherwise(texts).name.keep()
            ).write_csv()
        case "markdown":
            tables = (f"**{clean(table.title)}**\n\n{in_markdown(table)}" for table in report.tables)
            return "\n\n".join([*tables, "\n".join(f"- {note}" for note in notes)])
        case "latex":
            tables = (f"% {clean(table.title)}\n{_in_latex(table)}" for table in report.tables)
            return "\n\n".join([*tables, "\n".join(f"% {note}" for note in notes)])
        case "table":
            return Group(*shown(report.tables, width), *(wrapped(note, width) for note in notes))


def shown(tables: Sequence[Table], width: int | None) -> Iterator[RenderableType]:
    """Tables for a terminal, an empty line below each."""
    for table in tables:
        yield from lay_out(table, width)
        yield Text("")


def in_markdown(table: Table) -> str:
    """A table in Markdown, without its title."""
    return markdown_table(texts_of(table))


def texts_of(table: Table) -> pl.DataFrame:
    """A table as a frame of texts, whose first columns have the names."""
    groups = bool(table.groups)
    rows = [
        [clean(text) for text in (*[row.group] * groups, row.name, *map(str, cells))]
        for row, cells in zip(table.rows, table.cells(), strict=True)
    ]
    heads = (*[table.groups] * groups, table.names, *(column.text for column in table.columns))
    return pl.DataFrame(rows, dict.fromkeys(_unlike(heads), pl.String), orient="row")


def _unlike(heads: Sequence[str]) -> Iterator[str]:
    """What is above the columns; one that is called like another gets a colon."""
    taken: set[str] = set()
    for text in heads:
        name = clean(text)
        while name in taken:
            name += ":"
        taken.add(name)
        yield name


def _in_latex(table: Table) -> str:
    """A table as a tabular with the rules of booktabs, what LaTeX would read as commands escaped."""
    frame = texts_of(table)
    named = frame.width - len(table.columns)
    aligned = [*["left"] * named, *["right"] * (frame.width - named)]
    text = tabulate(frame.rows(), frame.columns, "latex_booktabs", disable_numparse=True, colalign=aligned)
    return STARTS_A_ROW.sub(r" {}\1", text)
