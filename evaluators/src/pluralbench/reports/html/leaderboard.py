"""The leaderboard table (models by benchmarks, with their mean), the table of runs and that of rejected runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.ranks import RankInterval, mean_of_independent

from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.html.board import Board, Listed, facets_of, plural, size_of, table_key, user_context_of
from pluralbench.reports.html.components import Cell, Head, Row, Scale, number, scale_of, table
from pluralbench.reports.html.sources import sources
from pluralbench.reports.html.tables import rank_cell
from pluralbench.reports.layout import clean
from pluralbench.reports.ranking import RANKS, ranks_of_rows
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import Run

DEFAULTS = {"profile": "none", "variables": "all"}  # values that a name does not show
ABSENT = Cell("", "")


class Entry(NamedTuple):
    """A row of the leaderboard: a model with one prompt setting.

    Attributes:
        rows: Index of its row, by the index of a sheet.
    """

    name: str
    rows: Mapping[int, int]


def leaderboard(key: str, board: Board) -> Markup:
    """Make the table of all models on all benchmarks, with links to their details."""
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
    caption = f"{plural(len(entries), 'model')}: overall numbers in %, with {CONFIDENCE:.0%} intervals."
    notes = list(_notes(board, has_mean=has_mean))
    return table(key, caption, heads, rows, notes=notes, provenance=sources(runs, names), search="Search models")


def runs_table(key: str, board: Board) -> Markup:
    """Make the table of runs: overall number, rank, model and settings, and the result of the checks, if any."""
    runs = board.accepted
    checked = any(listed.checked is not None for listed in runs)
    scale = scale_of(listed.run.headline for listed in runs)
    rows = []
    for listed in runs:
        at, place = board.rows[listed.run.path]
        cells = [
            Cell(clean(listed.run.path.as_posix()), link=f"#{listed.key}"),
            Cell(clean(listed.run.name)),
            Cell(board.sheet_title(at), link=f"#{table_key(at)}"),
            number(listed.run.headline, scale=scale),
            rank_cell(board.ranks[at].ranks[place]),
            Cell(user_context_of(listed.run)),
            Cell(kind_name(listed.run.result.model.kind)),
            Cell(size_of(listed.run)),
            *([Cell(listed.checked.summary)] if listed.checked else []),
            _day(listed.run.provenance.finished),
        ]
        rows.append(Row(cells, facets=facets_of([listed])))
    names = ["run", "model", "benchmark", "overall", "rank", "user context", "kind", "parameters"]
    names += [*(["checks"] if checked else []), "finished"]
    heads = [Head(name, number=name in {"overall", "rank", "finished"}) for name in names]
    return table(key, f"{plural(len(runs), 'run')}: overall numbers in %, with 95% intervals.", heads, rows)


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
                Cell(clean(" ".join(finding.text for finding in listed.checked.rejection_reasons))),
            )
        )
        for listed in runs
        if listed.checked is not None
    ]
    return table(key, caption, heads, rows)


def _cell(board: Board, at: int, row: int | None, scale: Scale | None) -> Cell:
    """A model's number and rank on a sheet."""
    if row is None:
        return ABSENT
    cell = number(board.sheets[at].runs[row].headline, scale=scale)
    rank = board.ranks[at].ranks[row]
    return cell if rank is None else cell._replace(below=f"rank {rank_cell(rank).text}")


def entries_of(sheets: Sequence[Sheet]) -> list[Entry]:
    """Collect the rows of each model and prompt setting; a second such run of a sheet gets an entry of its own."""
    entries: dict[str, dict[int, int]] = {}
    for at, sheet in enumerate(sheets):
        for index, row in enumerate(sheet.rows):
            if sheet.other:
                continue
            name = _entry_name(row.run)
            key = name if at not in entries.get(name, {}) else row.name
            entries.setdefault(key, {})[at] = index
    return [Entry(name, rows) for name, rows in entries.items()]


def _entry_name(run: Run) -> str:
    """The model, and its prompt settings that are not the defaults."""
    settings = {"profile": run.config.prompt.profile, "variables": run.config.judge_setting("variables")}
    shown = [f"{name} {value}" for name, value in settings.items() if value not in {None, DEFAULTS[name]}]
    return f"{run.name} ({', '.join(shown)})" if shown else run.name


def main_of(sheets: Sequence[Sheet]) -> list[int]:
    """Return the index of the sheet that represents each benchmark in the mean: its first one."""
    first: dict[str, int] = {}
    for at, sheet in enumerate(sheets):
        first.setdefault(sheet.runs[0].config.benchmark.name, at)
    return list(first.values())


def _mean(entry: Entry, board: Board, main: Sequence[int]) -> Estimate:
    if not all(at in entry.rows for at in main):
        return Estimate(None)
    return mean_of_independent([board.sheets[at].runs[entry.rows[at]].headline for at in main])


def _ranks(entries: Sequence[Entry], board: Board, means: Mapping[int, Estimate]) -> dict[int, RankInterval | None]:
    """Ranks by the mean, from the mean difference over benchmarks."""
    scored = [index for index, mean in means.items() if mean.value is not None]
    differences = {}
    for one, other in combinations(scored, 2):
        by_benchmark = [_difference(entries[one], entries[other], board, at) for at in main_of(board.sheets)]
        differences[one, other] = mean_of_independent(by_benchmark)
    return dict(enumerate(ranks_of_rows(len(entries), scored, differences)))


def _difference(one: Entry, other: Entry, board: Board, at: int) -> Estimate:
    """The second entry's number minus the first one's on a sheet."""
    first, second = one.rows[at], other.rows[at]
    gap = board.ranks[at].differences.get((min(first, second), max(first, second)), Estimate(None))
    if first < second or gap.value is None or gap.low is None or gap.high is None:
        return gap
    return Estimate(-gap.value, -gap.high, -gap.low, gap.n, gap.clusters, gap.method)


def _order(entry: Entry, mean: Estimate, board: Board, columns: Sequence[int]) -> tuple[float, ...]:
    """Sort key: the best mean first, then by the first benchmarks that the model has."""
    values = [mean, *(board.sheets[at].runs[entry.rows[at]].headline for at in columns if at in entry.rows)]
    return tuple(1.0 if one.value is None else -one.value for one in values)


def _heading(sheet: Sheet, sheets: Sequence[Sheet]) -> str:
    several = sum(other.title == sheet.title for other in sheets) > 1
    return clean(", ".join([sheet.title, *(sheet.qualifiers if several else ())]))


def _notes(board: Board, *, has_mean: bool) -> Iterator[str]:
    yield RANKS
    if has_mean:
        main = [_heading(board.sheets[at], board.sheets) for at in main_of(board.sheets)]
        yield (
            f"Mean: unweighted mean of {'; '.join(main)}, for models that have all of them. Its interval assumes that "
            "the benchmarks are independent; its ranks use the mean of the differences on each benchmark."
        )
    yield "Bars: each number with its interval, scaled from the lowest to the highest bound of the column."
