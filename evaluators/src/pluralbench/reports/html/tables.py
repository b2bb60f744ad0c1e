"""Tables of a page: numbers with bars, ranks, notes and provenance."""

from collections.abc import Sequence

from markupsafe import Markup
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.ranks import RankInterval
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.metrics.metric import BASELINES, SHOWN_COUNTS
from pluralbench.reports.html.board import FEW_ITEMS, Board, table_key
from pluralbench.reports.html.components import (
    NOTHING,
    Cell,
    Head,
    Row,
    Scale,
    details,
    join,
    number,
    scale_of,
    table,
)
from pluralbench.reports.html.sources import sources
from pluralbench.reports.notes import notes as notes_on
from pluralbench.reports.profile_modes import MODES_NOTE, mode_table, modes_of
from pluralbench.reports.ranking import RANKS
from pluralbench.reports.sheets import UNREADABLE, Sheet, table_of
from pluralbench.reports.suite import suite_rows
from pluralbench.reports.tables import Column, Table, Value, format_value, marks_in
from pluralbench.reports.tables import Row as TableRow
from pluralbench.results.numbers import change, mark, points
from pluralbench.results.runs import Run
from pluralbench.results.suite import SuiteRun

ABSENT = Cell("", "")
COIN = BASELINES["coin"]
MODEL = Head("model", number=False)


def sheet_table(board: Board, at: int, search: str | None = None) -> Markup:
    """Make the table of a sheet: a row for each model, the best first, then the baselines on the same items.

    Parts with few decisions are in a folded table of their own.

    Args:
        search: Label of the search box; see `table`.
    """
    sheet, ranking = board.sheets[at], board.ranks[at]
    sizes = [max((row.number(column).n or 0 for row in sheet.rows), default=0) for column in sheet.columns]
    small = [place for place, n in enumerate(sizes) if sheet.columns[place].part and 0 < n < FEW_ITEMS]
    large = [place for place in range(len(sheet.columns)) if place not in small]
    counted = counts_shown(sheet.runs)
    values = table_of(sheet, wide=True)
    cells = cells_of(values)
    ranks = [*ranking.ranks, *([None] * len(sheet.baselines))]
    rows, rows_of_small = [], []
    for row, rank, own in zip([*sheet.rows, *sheet.baselines], ranks, cells, strict=True):
        of_run = row.baseline is None
        name = Cell(clean(row.name), link=f"#{board.models[row.run.name]}" if of_run else "")
        facets = board.facets([row.run]) if of_run else None
        main = [own[place] for place in large]
        if of_run:
            main[0] = headline_cell(row.run, main[0])
        counts = count_cells(row.run, counted) if of_run else [ABSENT] * (1 + len(counted))
        rows.append(Row((name, rank_cell(rank), *main, *counts), not of_run, facets))
        rows_of_small.append(Row((name, *(own[place] for place in small)), not of_run, facets))
    overall, *parts = (Head(clean(sheet.columns[place].text)) for place in large)
    heads = [MODEL, Head("rank"), overall._replace(order="descending"), *parts, *map(Head, ("items", *counted))]
    notes = [*notes_on([sheet]), *_marks_of(values, large), ranking.problem or RANKS]
    provenance = sources(sheet.runs, [row.name for row in sheet.rows])
    shown = [table(table_key(at), sheet.heading, heads, rows, notes=notes, provenance=provenance, search=search)]
    if small:
        text = f"{plural(len(small), 'part')} with fewer than {FEW_ITEMS} decisions"
        heads = [MODEL, *(Head(f"{clean(sheet.columns[place].text)} (n = {sizes[place]})") for place in small)]
        title, marks = f"{sheet.heading}: {text}", _marks_of(values, small)
        shown.append(details(text, table(f"{table_key(at)}-small", title, heads, rows_of_small, notes=marks)))
    return join(shown)


def _marks_of(source: Table, places: Sequence[int]) -> list[str]:
    """The explanation of the marks in these columns."""
    rows = [row._replace(values=[row.values[place] for place in places]) for row in source.rows]
    return [*marks_in([source._replace(columns=[source.columns[place] for place in places], rows=rows)])]


def counts_shown(runs: Sequence[Run]) -> list[str]:
    """Return the counts that a table of runs has beside the items: invalid ones, and others that a run has."""
    return [name for name in SHOWN_COUNTS if name == "invalid" or any(run.count(name) for run in runs)]


def count_cells(run: Run, names: Sequence[str]) -> list[Cell]:
    """Make the cells of a run's number of items and of these counts."""
    return [Cell(f"{count:,}", count) for count in (run.items_counted, *(run.count(name) for name in names))]


def headline_cell(run: Run, cell: Cell | None = None) -> Cell:
    """Make the cell of a run's overall number, or of how many of its verdicts cannot be read if these are most.

    Args:
        cell: The cell of the number. Default: a cell without a bar.
    """
    if run.unreadable:
        return Cell(UNREADABLE, "", interval=run.unreadable)
    return number(run.headline) if cell is None else cell


def rank_cell(rank: RankInterval | None) -> Cell:
    """Make the cell of a rank, or of a range of ranks that a model may have."""
    if rank is None:
        return Cell("", "")
    return Cell(f"{rank.best}–{rank.worst}" if rank.worst > rank.best else str(rank.best), rank.best)


def cells_of(source: Table) -> list[list[Cell]]:
    """Make the cells of a table, row by row; numbers with intervals have bars, marked at the coin's number or at 0.

    Parts have no bars, so that a table stays narrow, and neither have numbers without intervals.
    """
    columns = []
    for column, values in zip(source.columns, zip(*(row.values for row in source.rows), strict=True), strict=True):
        estimates = [value for value in values if isinstance(value, Estimate)]
        drawn = column.bounds and not column.part and any(one.low is not None for one in estimates)
        pairs = zip(source.rows, values, strict=True)
        coin = next((one.value for row, one in pairs if row.name == COIN and isinstance(one, Estimate)), None)
        scale = scale_of(estimates, 0.0 if column.kind in {points, change} else coin) if drawn else None
        columns.append([_cell(column, value, scale) for value in values])
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(column: Column, value: Value, scale: Scale | None) -> Cell:
    if isinstance(value, Estimate):
        cell = number(value, column.kind, scale=scale)
        return cell._replace(interval=f"{cell.interval}{mark(value) if column.bounds else ''}")
    text = clean(str(format_value(column, value)))
    return Cell(text, "" if value is None or isinstance(value, str) else value)


def modes_table(key: str, sheet: Sheet) -> Markup | None:
    """Make the table of profile modes; None if no model has runs with and without user context."""
    models = modes_of(sheet.runs)
    if not models:
        return None
    modes = mode_table(sheet, models)
    runs = [one.run for own in models for one in own]
    return plain_table(key, modes, notes=[MODES_NOTE], provenance=sources(runs, [row.name for row in modes.rows]))


def plain_table(
    key: str, source: Table, *, notes: Sequence[str] = (), provenance: Markup, search: str | None = None
) -> Markup:
    """Make the page's version of a terminal table.

    Args:
        search: Label of the search box; see `table`.
    """
    heads = [Head(source.names, number=False), *(Head(clean(one.text)) for one in source.columns)]
    rows = [
        Row((Cell(clean(row.name)), *cells), row.quiet)
        for row, cells in zip(source.rows, cells_of(source), strict=True)
    ]
    return table(key, source.title, heads, rows, notes=notes, provenance=provenance, search=search)


def suite_tables(suites: Sequence[SuiteRun]) -> list[Markup]:
    """Make the tables of suites: a row for each model, or for each column if there is one model."""
    tables, notes = suite_rows(suites)
    notes = [*notes, *marks_in(tables)]
    last = len(tables) - 1
    return [
        plain_table(
            f"suite-{place}", _upright(one), notes=notes if place == last else (), provenance=NOTHING, search=""
        )
        for place, one in enumerate(tables)
    ]


def _upright(source: Table) -> Table:
    """A table of one row as a table of one column, which fits a page however many numbers it has."""
    if len(source.rows) > 1:
        return source
    (row,) = source.rows
    rows = [TableRow(column.text, [value]) for column, value in zip(source.columns, row.values, strict=True)]
    return Table(source.title, "column", [Column(row.name)], rows)
