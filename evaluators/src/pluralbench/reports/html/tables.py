"""Tables of a page from the sheets of a report: numbers with their bars, ranks, and where they come from."""

from collections.abc import Sequence

from markupsafe import Markup
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.ranks import Rank

from pluralbench.reports.footnotes import footnotes
from pluralbench.reports.html.components import DASH, Cell, Head, Row, Scale, number, scale_of, table
from pluralbench.reports.html.sources import sources
from pluralbench.reports.layout import Page, clean
from pluralbench.reports.names import row_names
from pluralbench.reports.notes import mark
from pluralbench.reports.profile_modes import MODES_NOTE, Told, modes_of
from pluralbench.reports.ranking import RANKS, Ranked
from pluralbench.reports.sheets import Column, Sheet
from pluralbench.reports.sheets import Row as Line

CHANCE = 0.5


def sheet_table(key: str, sheet: Sheet, found: Ranked, links: Sequence[str]) -> Markup:
    """All numbers of a sheet, a row a model, the best first, and below them what references get on the same items.

    found: the ranks of its rows. links: for each row where its model is told of.
    """
    rows = [*sheet.rows, *sheet.references]
    scales = [_scale(column, [row.number(column) for row in rows]) for column in sheet.columns]
    ranks = [*found.ranks, *([None] * len(sheet.references))]
    to = [*links, *([""] * len(sheet.references))]
    lines = [
        Row((Cell(clean(row.name), link=link), rank_cell(rank), *_cells(sheet, row, scales)), row.reference is not None)
        for row, rank, link in zip(rows, ranks, to, strict=True)
    ]
    overall, *parts = (Head(clean(column.heading)) for column in sheet.columns)
    heads = [Head("model", number=False), Head("rank"), overall._replace(order="descending"), *parts]
    notes = [*footnotes([sheet], wide=True), found.why_not or RANKS]
    provenance = sources(sheet.runs, [row.name for row in sheet.rows])
    return table(key, sheet.heading, heads, lines, notes=notes, provenance=provenance)


def rank_cell(rank: Rank | None) -> Cell:
    """The rank that a model shares with those it cannot be told from, and the last one that it may have."""
    if rank is None:
        return Cell("", "")
    return Cell(f"{rank.best}–{rank.worst}" if rank.worst > rank.best else str(rank.best), rank.best)


def per_cent(column: Column) -> tuple[float, str]:
    """What a column's numbers are multiplied by, and their form."""
    return (1.0, ".2f") if column.place.metric == "kappa" else (100.0, "+.1f" if column.shift else ".1f")


def _cells(sheet: Sheet, row: Line, scales: Sequence[Scale | None]) -> list[Cell]:
    made = []
    for column, scale in zip(sheet.columns, scales, strict=True):
        per, form = per_cent(column)
        found = row.number(column)
        cell = number(found, form, per=per, scale=scale)
        made.append(cell._replace(interval=f"{cell.interval}{mark(found)}"))
    return made


def _scale(column: Column, numbers: Sequence[Estimate]) -> Scale | None:
    return scale_of(numbers, 0.0 if column.shift else None)


def modes_table(key: str, sheet: Sheet) -> Markup | None:
    """What models gain where they are told of the person; None where none has runs with and without it."""
    told = [one for own in modes_of(sheet.runs) for one in own]
    if not told:
        return None
    names = row_names([one.run for one in told])
    scales = [scale_of(one.run.headline for one in told), scale_of((_gain(one) for one in told), 0.0)]
    rows = [
        Row(
            (
                Cell(clean(name)),
                number(one.run.headline, scale=scales[0]),
                number(_gain(one), "+.1f", scale=scales[1]) if one.against_none else Cell("", ""),
                p_cell(one.against_none.p_value if one.against_none else None),
            )
        )
        for name, one in zip(names, told, strict=True)
    ]
    heads = [Head("model", number=False), Head("overall"), Head("against none"), Head("p")]
    title = f"{sheet.heading}: what is told of the person"
    provenance = sources([one.run for one in told], names)
    return table(key, title, heads, rows, notes=[MODES_NOTE], provenance=provenance)


def _gain(told: Told) -> Estimate:
    found = told.against_none
    return Estimate(None) if found is None else Estimate(found.difference, found.low, found.high)


def p_cell(p: float | None) -> Cell:
    """A p-value."""
    return Cell(DASH if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001", "" if p is None else p)


def page_table(key: str, page: Page, *, notes: Sequence[str] = (), provenance: Markup) -> Markup:
    """A table of texts as a report has it in the terminal."""
    heads = [Head(page.names, number=False), *(Head(one.text, sortable=False) for one in page.headings)]
    rows = [
        Row((Cell(clean(line.name)), *(Cell(" ".join(cell.split()), "") for cell in line.cells)), line.quiet)
        for line in page.lines
    ]
    return table(key, page.title, heads, rows, notes=notes, provenance=provenance)
