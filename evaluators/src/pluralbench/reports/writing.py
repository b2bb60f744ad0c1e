"""What a report says in each form: for people as a table, Markdown or LaTeX, for programs as JSON or CSV."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import markdown_table
from rich.console import Console, Group, RenderableType
from rich.text import Text
from tabulate import tabulate

from pluralbench.reports import Format
from pluralbench.reports.layout import Page, clean, lay_out

STARTS_A_ROW = re.compile(r"(?m)^ ([\[*])")  # what LaTeX would take for an argument of the row's end before it


class Content(NamedTuple):
    """What a report says. pages, notes: for people. rows, frame: for programs, as they are and as a table."""

    pages: list[Page]
    notes: list[str]
    rows: list[dict[str, Any]]
    frame: pl.DataFrame


def written(content: Content, form: Format, width: int | None) -> str | Group:
    """The content in a form. width: columns of the terminal, None for as many as it needs."""
    match form:
        case "json":
            return json.dumps(content.rows, indent=1, ensure_ascii=False, allow_nan=False)
        case "csv":
            return content.frame.write_csv()
        case "markdown":
            tables = (f"**{clean(page.title)}**\n\n{markdown_table(texts_of(page))}" for page in content.pages)
            return "\n\n".join([*tables, "\n".join(f"- {clean(note)}" for note in content.notes)])
        case "latex":
            tables = (f"% {clean(page.title)}\n{_latex_table(texts_of(page))}" for page in content.pages)
            return "\n\n".join([*tables, "\n".join(f"% {clean(note)}" for note in content.notes)])
        case "table":
            parts = [part for page in content.pages for part in _laid(page, width)]
            return Group(*parts, *(_wrapped(note, width) for note in content.notes))


def texts_of(page: Page) -> pl.DataFrame:
    """A page as a frame of texts, whose first column has the names."""
    rows = [[clean(line.name), *map(_plain, line.cells)] for line in page.lines]
    return pl.DataFrame(rows, dict.fromkeys(_columns(page), pl.String), orient="row")


def _columns(page: Page) -> Iterator[str]:
    """What is above the columns; one that is called like another gets a colon."""
    taken: set[str] = set()
    for text in (page.names, *(heading.text for heading in page.headings)):
        name = clean(text)
        while name in taken:
            name += ":"
        taken.add(name)
        yield name


def _plain(cell: str) -> str:
    """A cell without the spaces that put points below each other."""
    return " ".join(cell.split()).replace("[ ", "[")


def _latex_table(frame: pl.DataFrame) -> str:
    """A frame of texts as a tabular with the rules of booktabs, what LaTeX would read as commands escaped."""
    aligned = ["left", *["right"] * (frame.width - 1)]
    text = tabulate(frame.rows(), frame.columns, "latex_booktabs", disable_numparse=True, colalign=aligned)
    return STARTS_A_ROW.sub(r" {}\1", text)


def _laid(page: Page, width: int | None) -> Iterator[RenderableType]:
    laid = lay_out(page, width)
    yield from laid.tables
    yield from (_wrapped(legend, width) for legend in laid.legend)
    yield Text("")


def _wrapped(note: str, width: int | None) -> Text:
    """A sentence on lines of so many columns, broken here since consoles that print paths do not."""
    return Text(note) if width is None else Text("\n").join(Text(note).wrap(Console(), width))
