"""Tables of runs: those whose numbers the page shows, the benchmarks of a model, and rejected runs."""

import re
from collections.abc import Sequence

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.reports.figures.series import kind_name
from pluralbench.reports.html.board import (
    FEW_ITEMS,
    NO_CONTEXT,
    Board,
    Listed,
    facets_of,
    size_of,
    table_key,
    user_context_of,
)
from pluralbench.reports.html.components import Cell, Head, Row, details, join, number, scale_of, table
from pluralbench.reports.html.tables import count_cells, counts_shown, headline_cell, rank_cell
from pluralbench.results.checks import STATES
from pluralbench.results.examples import MOVED


def runs_table(key: str, board: Board) -> Markup:
    """Make the table of runs: overall number, rank, model and settings, and the result of the checks, if any."""
    runs = board.accepted
    checked = any(listed.checked is not None for listed in runs)
    rows = []
    for listed in runs:
        at, place = board.rows[listed.run.path]
        cells = [
            Cell(clean(listed.run.path.as_posix()), link=f"#{listed.key}"),
            Cell(clean(listed.run.name)),
            Cell(board.sheet_title(at), link=f"#{table_key(at)}"),
            headline_cell(listed.run),
            rank_cell(board.ranks[at].ranks[place]),
            Cell(user_context_of(listed.run)),
            Cell(kind_name(listed.run.result.model.kind)),
            Cell(size_of(listed.run)),
            *([Cell(STATES[listed.checked.state])] if listed.checked else []),
            _day(listed.run.provenance.finished),
        ]
        rows.append(Row(cells, facets=facets_of([listed])))
    names = ["run", "model", "benchmark", "overall", "rank", "user context", "kind", "parameters"]
    names += [*(["checks"] if checked else []), "finished"]
    heads = [Head(name, number=name in {"overall", "rank", "finished"}) for name in names]
    return table(
        key, f"{plural(len(runs), 'run')}: overall numbers in %, with {CONFIDENCE:.0%} intervals.", heads, rows
    )


def benchmarks_table(key: str, caption: str, board: Board, runs: Sequence[Listed]) -> Markup:
    """Make the table of a model: a row for each of its runs, those on few items in a folded table."""
    large = [listed for listed in runs if listed.run.items_counted >= FEW_ITEMS] or list(runs)
    small = [listed for listed in runs if listed not in large]
    parts = [_benchmarks_table(key, caption, board, large)]
    if small:
        text = f"{plural(len(small), 'benchmark')} with fewer than {FEW_ITEMS} items"
        parts.append(details(text, _benchmarks_table(f"{key}-small", f"{caption} {text}.", board, small)))
    return join(parts)


def _benchmarks_table(key: str, caption: str, board: Board, runs: Sequence[Listed]) -> Markup:
    every = [listed.run for listed in runs]
    coins = [run.estimate("overall", baseline="coin") for run in every]
    scale, counted = scale_of([*(run.headline for run in every), *coins]), counts_shown(every)
    ranked = any(len(board.sheets[board.rows[run.path][0]].rows) > 1 for run in every)
    rows = []
    for run, coin in zip(every, coins, strict=True):
        at, place = board.rows[run.path]
        title, setting = board.sheet_title(at), user_context_of(run)
        cells = [
            Cell(title if setting == NO_CONTEXT else f"{title}, user context: {setting}", link=f"#{table_key(at)}"),
            *([rank_cell(board.ranks[at].ranks[place])] if ranked else []),
            headline_cell(run, number(run.headline, scale=scale and scale._replace(mark=coin.value))),
            number(coin),
            *count_cells(run, counted),
        ]
        rows.append(Row(cells))
    heads = [Head("benchmark", number=False), *([Head("rank")] if ranked else []), Head("overall"), Head("coin")]
    heads += [Head(name) for name in ("items", *counted)]
    return table(key, caption, heads, rows, search="")


def _day(finished: str) -> Cell:
    """The day as a cell that sorts as a number, which keeps it on one line."""
    day = finished[:10]
    return Cell(day, float(day.replace("-", "")) if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else "")


def rejected_table(key: str, caption: str, runs: Sequence[Listed]) -> Markup:
    """Make the table of runs whose numbers are not shown, with the reasons."""
    heads = [Head(name, number=False) for name in ("run", "model", "benchmark", "reason")]
    rows = [
        Row(
            (
                Cell(clean(listed.run.path.as_posix())),
                Cell(clean(listed.run.name)),
                Cell(clean(listed.run.config.benchmark.title)),
                Cell(clean(" ".join(finding.text.removesuffix(MOVED) for finding in listed.checked.rejection_reasons))),
            )
        )
        for listed in runs
        if listed.checked is not None
    ]
    return table(key, caption, heads, rows)
