"""Write reports in each output format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl
from pluralbench_release import markdown_table
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs.console import clean, terminal_json
from pluralbench_tables import csv_text
from rich.console import Group, RenderableType
from rich.text import Text

from pluralbench.reports import Format
from pluralbench.reports.latex import in_latex
from pluralbench.reports.layout import lay_out, wrapped
from pluralbench.reports.notes import list_names
from pluralbench.reports.tables import Report, Table, in_sentences, marks_in

LINE = 80  # columns of a single definition that is printed in place of its term


def format_report(report: Report, form: Format, width: int | None) -> str | Group:
    """Write a report in an output format, in `width` columns of a terminal or in as many as needed."""
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
            grids = []
            for table, frame in ((one._replace(title=clean(one.title)), texts_of(one)) for one in report.tables):
                grids.append((table, [frame.columns, *frame.rows()], frame.width - len(table.columns)))
            return in_latex(grids, [clean(text) for text in report.texts])
        case "table":
            texts = (*report.notes, *marks, *_where_defined(report.definitions))
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


def _where_defined(definitions: Mapping[str, str]) -> list[str]:
    """Say where terms are defined, in one sentence; a definition that is as short stands for itself."""
    sentences = in_sentences(definitions)
    if not sentences or (len(sentences) == 1 and len(sentences[0]) <= LINE):
        return sentences
    return [f"Defined by `pluralbench report RUN --notes`: {list_names([*definitions])}."]
