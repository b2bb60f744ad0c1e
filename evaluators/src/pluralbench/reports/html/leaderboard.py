"""The leaderboard: a row a model, a column a benchmark, and their mean where a model has all of them; and all runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.ranks import RankInterval, mean_of_independent

from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.html.board import Board, Listed, facets_of, many, size_of, table_key, told_of
from pluralbench.reports.html.components import Cell, Head, Row, Scale, number, scale_of, table
from pluralbench.reports.html.sources import sources
from pluralbench.reports.html.tables import rank_cell
from pluralbench.reports.layout import clean
from pluralbench.reports.ranking import RANKS, spread_over
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import Run

PLAIN = {"profile": "none", "variables": "all"}  # what needs no word
ABSENT = Cell("", "")


class Entry(NamedTuple):
    """A model, asked in one way, and by the number of a sheet its row there."""

    name: str
    rows: Mapping[int, int]


def leaderboard(key: str, board: Board) -> Markup:
    """A table of all models on all benchmarks, with links to where each is told of."""
    entries = entries_of(board.sheets)
    columns = [at for at, sheet in enumerate(board.sheets) if not sheet.other]
    means = {place: _mean(entry, board, main_of(board.sheets)) for place, entry in enumerate(entries)}
    has_mean = len(main_of(board.sheets)) > 1
    ranks = _ranks(entries, board, means) if has_mean else {}
    order = sorted(range(len(entries)), key=lambda place: _order(entries[place], means[place], board, columns))
    mean_scale = scale_of(means.values())
    scales = {at: scale_of(run.headline for run in board.sheets[at].runs) for at in columns}
    rows = []
    for place in order:
        entry = entries[place]
        own = [board.sheets[at].runs[row] for at, row in entry.rows.items()]
        cells = [Cell(clean(entry.name), link=f"#{board.models[own[0].name]}")]
        cells += [rank_cell(ranks.get(place)), number(means[place], scale=mean_scale)] if has_mean else []
        for at in columns:
            cells.append(_cell(board, at, entry.rows.get(at), scales[at]))
        rows.append(Row(cells, facets=board.facets(own)))
    heads = [Head("model", number=False), *([Head("rank"), Head("mean", order="descending")] if has_mean else [])]
    heads += [Head(_heading(board.sheets[at], board.sheets), link=f"#{table_key(at)}") for at in columns]
    runs = [run for at in columns for run in board.sheets[at].runs]
    names = [f"{row.name} on {sheet.title}" for sheet in (board.sheets[at] for at in columns) for row in sheet.rows]
    caption = f"{many(len(entries), 'model')}: overall numbers in %, with {CONFIDENCE:.0%} intervals."
    notes = list(_notes(board, has_mean=has_mean))
    return table(key, caption, heads, rows, notes=notes, provenance=sources(runs, names), search="Search models")


def runs_table(key: str, board: Board) -> Markup:
    """A row a run, with what it is, its overall number, its rank, and what its checks found, if it was checked."""
    runs = board.accepted
    checked = any(one.checked is not None for one in runs)
    scale = scale_of(one.run.headline for one in runs)
    rows = []
    for one in runs:
        at, place = board.rows[one.run.path]
        cells = [
            Cell(clean(one.run.path.as_posix()), link=f"#{one.key}"),
            Cell(clean(one.run.name)),
            Cell(board.called(at), link=f"#{table_key(at)}"),
            number(one.run.headline, scale=scale),
            rank_cell(board.ranks[at].ranks[place]),
            Cell(told_of(one.run)),
            Cell(kind_name(one.run.result.model.kind)),
            Cell(size_of(one.run)),
            *([Cell(one.checked.summary)] if one.checked else []),
            _day(one.run.provenance.finished),
        ]
        rows.append(Row(cells, facets=facets_of([one])))
    names = ["run", "model", "benchmark", "overall", "rank", "told of the person", "kind", "parameters"]
    names += [*(["checks"] if checked else []), "finished"]
    heads = [Head(name, number=name in {"overall", "rank", "finished"}) for name in names]
    return table(key, f"{many(len(runs), 'run')}: the overall number in %, with its 95% interval.", heads, rows)


def _day(finished: str) -> Cell:
    """A day, which sorts as a number so that it stays on one line."""
    day = finished[:10]
    return Cell(day, float(day.replace("-", "")) if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else "")


def apart_table(key: str, caption: str, runs: Sequence[Listed]) -> Markup:
    """Runs whose numbers are shown nowhere, with the reasons."""
    heads = [Head(name, number=False) for name in ("run", "model", "benchmark", "why")]
    rows = [
        Row(
            (
                Cell(clean(one.run.path.as_posix())),
                Cell(clean(one.run.name)),
                Cell(clean(one.run.config.benchmark.title)),
                Cell(clean(" ".join(found.text for found in one.checked.rejection_reasons))),
            )
        )
        for one in runs
        if one.checked is not None
    ]
    return table(key, caption, heads, rows)


def _cell(board: Board, at: int, row: int | None, scale: Scale | None) -> Cell:
    """A model's number on a sheet, with its rank there."""
    if row is None:
        return ABSENT
    made = number(board.sheets[at].runs[row].headline, scale=scale)
    rank = board.ranks[at].ranks[row]
    return made if rank is None else made._replace(below=f"rank {rank_cell(rank).text}")


def entries_of(sheets: Sequence[Sheet]) -> list[Entry]:
    """Models as they were asked, each with its rows; of two runs alike in a sheet the second is an entry of its own."""
    found: dict[str, dict[int, int]] = {}
    for at, sheet in enumerate(sheets):
        for place, row in enumerate(sheet.rows):
            if sheet.other:
                continue
            name = _called(row.run)
            own = name if at not in found.get(name, {}) else row.name
            found.setdefault(own, {})[at] = place
    return [Entry(name, rows) for name, rows in found.items()]


def _called(run: Run) -> str:
    """A model and how it was asked, where that is not the plain way."""
    told = {"profile": run.config.prompt.profile, "variables": run.config.judge_setting("variables")}
    more = [f"{what} {value}" for what, value in told.items() if value not in {None, PLAIN[what]}]
    return f"{run.name} ({', '.join(more)})" if more else run.name


def main_of(sheets: Sequence[Sheet]) -> list[int]:
    """The sheet that stands for each benchmark in a mean: its first one."""
    first: dict[str, int] = {}
    for at, sheet in enumerate(sheets):
        first.setdefault(sheet.runs[0].config.benchmark.name, at)
    return list(first.values())


def _mean(entry: Entry, board: Board, main: Sequence[int]) -> Estimate:
    if not all(at in entry.rows for at in main):
        return Estimate(None)
    return mean_of_independent([board.sheets[at].runs[entry.rows[at]].headline for at in main])


def _ranks(entries: Sequence[Entry], board: Board, means: Mapping[int, Estimate]) -> dict[int, RankInterval | None]:
    """Ranks by the mean, from the mean of the differences on each benchmark."""
    numbered = [place for place, mean in means.items() if mean.value is not None]
    differences = {}
    for one, other in combinations(numbered, 2):
        found = [_difference(entries[one], entries[other], board, at) for at in main_of(board.sheets)]
        differences[one, other] = mean_of_independent(found)
    return dict(enumerate(spread_over(len(entries), numbered, differences)))


def _difference(one: Entry, other: Entry, board: Board, at: int) -> Estimate:
    """The second entry's number less the first one's on a sheet."""
    first, second = one.rows[at], other.rows[at]
    found = board.ranks[at].differences.get((min(first, second), max(first, second)), Estimate(None))
    if first < second or found.value is None or found.low is None or found.high is None:
        return found
    return Estimate(-found.value, -found.high, -found.low, found.n, found.clusters, found.method)


def _order(entry: Entry, mean: Estimate, board: Board, columns: Sequence[int]) -> tuple[float, ...]:
    """The best mean first; without one by the first benchmarks that there are."""
    values = [mean, *(board.sheets[at].runs[entry.rows[at]].headline for at in columns if at in entry.rows)]
    return tuple(1.0 if one.value is None else -one.value for one in values)


def _heading(sheet: Sheet, sheets: Sequence[Sheet]) -> str:
    several = sum(other.title == sheet.title for other in sheets) > 1
    return clean(", ".join([sheet.title, *(sheet.told if several else ())]))


def _notes(board: Board, *, has_mean: bool) -> Iterator[str]:
    yield RANKS
    if has_mean:
        main = [_heading(board.sheets[at], board.sheets) for at in main_of(board.sheets)]
        yield (
            f"Mean: unweighted, of {'; '.join(main)}; of models that have them all. Its interval takes the benchmarks "
            "as independent of each other, and its ranks come from the mean of the differences on each."
        )
    yield "Bars: the interval and the number in it, from the lowest to the highest bound of the column."
