"""Tables of a page from the sheets of a report: numbers with their bars, ranks, and where they come from."""

from collections.abc import Sequence

from markupsafe import Markup
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.ranks import RankInterval

from pluralbench.reports.html.board import Board, table_key
from pluralbench.reports.html.components import Cell, Head, Row, Scale, number, scale_of, table
from pluralbench.reports.html.sources import sources
from pluralbench.reports.layout import clean
from pluralbench.reports.notes import notes as notes_on
from pluralbench.reports.numbers import change, mark, points
from pluralbench.reports.overview import table_of
from pluralbench.reports.profile_modes import MODES_NOTE, mode_table, modes_of
from pluralbench.reports.ranking import RANKS
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Column, Table, Value, marks_in, shown


def sheet_table(board: Board, at: int) -> Markup:
    """All numbers of a sheet, a row a model, the best first, and below them what references get on the same items."""
    sheet, found = board.sheets[at], board.ranks[at]
    given = table_of(sheet, wide=True)
    rows = [*sheet.rows, *sheet.references]
    ranks = [*found.ranks, *([None] * len(sheet.references))]
    lines = []
    for row, rank, cells in zip(rows, ranks, cells_of(given), strict=True):
        of_run = row.reference is None
        name = Cell(clean(row.name), link=f"#{board.models[row.run.name]}" if of_run else "")
        facets = board.facets([row.run]) if of_run else None
        lines.append(Row((name, rank_cell(rank), *cells), not of_run, facets))
    overall, *parts = (Head(clean(column.heading)) for column in sheet.columns)
    heads = [Head("model", number=False), Head("rank"), overall._replace(order="descending"), *parts]
    notes = [*notes_on([sheet]), *marks_in([given]), found.rejection_reasons or RANKS]
    provenance = sources(sheet.runs, [row.name for row in sheet.rows])
    return table(table_key(at), sheet.heading, heads, lines, notes=notes, provenance=provenance)


def rank_cell(rank: RankInterval | None) -> Cell:
    """The rank that a model shares with those it cannot be told from, and the last one that it may have."""
    if rank is None:
        return Cell("", "")
    return Cell(f"{rank.best}–{rank.worst}" if rank.worst > rank.best else str(rank.best), rank.best)


def cells_of(given: Table) -> list[list[Cell]]:
    """The values of a table, row by row, those with intervals with their bars; differences are held against 0."""
    columns = []
    for column, values in zip(given.columns, zip(*(row.values for row in given.rows), strict=True), strict=True):
        estimates = [value for value in values if isinstance(value, Estimate)]
        scale = scale_of(estimates, 0.0 if column.kind in {points, change} else None) if column.bounds else None
        columns.append([_cell(column, value, scale) for value in values])
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(column: Column, value: Value, scale: Scale | None) -> Cell:
    if isinstance(value, Estimate):
        made = number(value, column.kind, scale=scale)
        return made._replace(interval=f"{made.interval}{mark(value) if column.bounds else ''}")
    text = clean(str(shown(column, value)))
    return Cell(text, "" if value is None or isinstance(value, str) else value)


def modes_table(key: str, sheet: Sheet) -> Markup | None:
    """What models gain where they are told of the person; None where none has runs with and without it."""
    models = modes_of(sheet.runs)
    if not models:
        return None
    given = mode_table(sheet, models)
    runs = [one.run for own in models for one in own]
    return plain_table(key, given, notes=[MODES_NOTE], provenance=sources(runs, [row.name for row in given.rows]))


def plain_table(key: str, given: Table, *, notes: Sequence[str] = (), provenance: Markup) -> Markup:
    """A table as a report has it in the terminal."""
    heads = [Head(given.names, number=False), *(Head(clean(one.text)) for one in given.columns)]
    rows = [
        Row((Cell(clean(row.name)), *cells), row.quiet) for row, cells in zip(given.rows, cells_of(given), strict=True)
    ]
    return table(key, given.title, heads, rows, notes=notes, provenance=provenance)
