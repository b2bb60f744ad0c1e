"""The leaderboard: models by benchmarks, with their mean; models without all benchmarks in a table of their own."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.independent import independent_mean
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.reports.html.board import FEW_ITEMS, Board, table_key
from pluralbench.reports.html.components import (
    NOTHING,
    Cell,
    Head,
    Row,
    details,
    join,
    number,
    scale_of,
    table,
)
from pluralbench.reports.html.sources import sources
from pluralbench.reports.html.tables import ABSENT, MODEL, headline_cell, rank_cell
from pluralbench.reports.ranking import RANKS, Ranking, ranks_of_rows
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import MISSING, Run

DEFAULTS = {"profile": "none", "variables": "all"}  # values that a name does not show
FEW_NAMES = 5  # benchmarks that the note on the mean names


class Entry(NamedTuple):
    """A row of the leaderboard: a model with one prompt setting.

    Attributes:
        model: Name of the model.
        rows: Index of its row, by the index of a sheet.
    """

    name: str
    model: str
    rows: Mapping[int, int]


class Standings(NamedTuple):
    """The rows of the leaderboard with their means over the benchmarks.

    Attributes:
        entries: The rows.
        main: Index of the sheet that represents each benchmark in the mean.
        means: The mean of each entry; without a value if it does not have a number on each benchmark.
        ranking: Ranks of the entries by their mean; None if there is no mean.
    """

    entries: Sequence[Entry]
    main: Sequence[int]
    means: Sequence[Estimate]
    ranking: Ranking | None


def standings_of(board: Board) -> Standings:
    """Rank the models of a page by their mean over the benchmarks."""
    entries, main = entries_of(board.sheets), main_of(board.sheets)
    means = [_mean(entry, board, main) for entry in entries]
    scored = [at for at, mean in enumerate(means) if mean.value is not None]
    if len(main) < 2 or not scored:
        return Standings(entries, main, means, None)
    differences = {}
    for one, other in combinations(scored, 2):
        by_benchmark = [board.ranks[at].difference(entries[other].rows[at], entries[one].rows[at]) for at in main]
        differences[one, other] = independent_mean(by_benchmark)
    return Standings(entries, main, means, Ranking(ranks_of_rows(len(entries), scored, differences), differences))


def leaderboard(key: str, board: Board, standings: Standings) -> Markup:
    """Make the tables of all models on all benchmarks, with links to their details."""
    columns = [at for at, sheet in enumerate(board.sheets) if not sheet.other]
    large = [at for at in columns if board.sheets[at].items >= FEW_ITEMS] or columns
    small = [at for at in columns if at not in large]
    order = sorted(range(len(standings.entries)), key=lambda place: _order(standings, place, board, columns))
    ranking, means = standings.ranking, standings.means
    ranked = [place for place in order if ranking is None or means[place].value is not None]
    few = [place for place in order if place not in ranked]
    caption = f"{_counted(ranked, standings)}: overall numbers in %, with {CONFIDENCE:.0%} intervals."
    runs = [run for at in columns for run in board.sheets[at].runs]
    names = [f"{row.name} on {board.sheets[at].title}" for at in columns for row in board.sheets[at].rows]
    notes, provenance = list(_notes(board, standings)), sources(runs, names)
    search = "Search models" if len(ranked) > 1 else ""
    parts = [_table(key, caption, board, standings, ranked, large, notes=notes, provenance=provenance, search=search)]
    if few:
        own = f"{_counted(few, standings)} without a number on each benchmark, not ranked by the mean."
        parts.append(_table(f"{key}-few", own, board, standings, few, large))
    if small:
        noun = plural(len(small), "benchmark")
        text = f"{noun} with fewer than {FEW_ITEMS} items"
        own = f"{text}: overall numbers in %, with {CONFIDENCE:.0%} intervals."
        table_of_small = _table(f"{key}-small", own, board, standings, order, small, mean=False)
        parts.append(details(text, table_of_small))
    return join(parts)


def _counted(places: Sequence[int], standings: Standings) -> str:
    """The number of models in these rows, and of rows if a model has several."""
    models = len({standings.entries[place].model for place in places})
    return plural(models, "model") + (f" in {len(places)} settings" if len(places) > models else "")


def _table(
    key: str,
    caption: str,
    board: Board,
    standings: Standings,
    places: Sequence[int],
    columns: Sequence[int],
    *,
    mean: bool = True,
    notes: Sequence[str] = (),
    provenance: Markup = NOTHING,
    search: str = "",
) -> Markup:
    """A table of some entries and sheets; with `mean` also of the means, if there are any."""
    means = [standings.means[place] for place in places]
    ranking = standings.ranking if mean and any(one.value is not None for one in means) else None
    coins = [board.sheets[at].runs[0].estimate("overall", baseline="coin").value for at in standings.main]
    known = [coin for coin in coins if coin is not None]
    scale = scale_of(means, fmean(known) if coins and len(known) == len(coins) else None)
    rows = []
    for place, own_mean in zip(places, means, strict=True):
        entry = standings.entries[place]
        own = [board.sheets[at].runs[row] for at, row in entry.rows.items()]
        cells = [Cell(clean(entry.name), link=f"#{board.models[own[0].name]}")]
        if ranking is not None:
            cells += [rank_cell(ranking.ranks[place]), number(own_mean, scale=scale)]
        cells += [_cell(board, at, entry.rows.get(at)) for at in columns]
        rows.append(Row(cells, facets=board.facets(own)))
    heads = [MODEL, *([Head("rank"), Head("mean", order="descending")] if ranking else [])]
    heads += [Head(_heading(board.sheets[at], board.sheets), link=f"#{table_key(at)}") for at in columns]
    return table(key, caption, heads, rows, notes=notes, provenance=provenance, search=search)


def _cell(board: Board, at: int, row: int | None) -> Cell:
    """A model's number and rank on a sheet."""
    if row is None:
        return ABSENT
    cell = headline_cell(board.sheets[at].runs[row])
    rank = board.ranks[at].ranks[row]
    return cell if rank is None else cell._replace(below=f"rank {rank_cell(rank).text}")


def entries_of(sheets: Sequence[Sheet]) -> list[Entry]:
    """Collect the rows of each model and prompt setting; a second such run of a sheet gets an entry of its own."""
    entries: dict[str, tuple[str, dict[int, int]]] = {}
    for at, sheet in enumerate(sheets):
        for index, row in enumerate(sheet.rows):
            if sheet.other:
                continue
            name = _entry_name(row.run)
            key = row.name if name in entries and at in entries[name][1] else name
            entries.setdefault(key, (row.run.name, {}))[1][at] = index
    return [Entry(name, *rest) for name, rest in entries.items()]


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
    runs = [board.sheets[at].runs[entry.rows[at]] for at in main if at in entry.rows]
    if len(runs) < len(main):
        return MISSING
    return independent_mean([run.headline for run in runs])


def _order(standings: Standings, place: int, board: Board, columns: Sequence[int]) -> tuple[float, ...]:
    """Sort key: the best mean first, then by the first benchmarks that the model has."""
    entry = standings.entries[place]
    own = [board.sheets[at].runs[entry.rows[at]] for at in columns if at in entry.rows]
    values = [standings.means[place], *(run.headline for run in own)]
    return tuple(1.0 if one.value is None else -one.value for one in values)


def _heading(sheet: Sheet, sheets: Sequence[Sheet]) -> str:
    several = sum(other.title == sheet.title for other in sheets) > 1
    return clean(", ".join([sheet.title, *(sheet.qualifiers if several else ())]))


def _notes(board: Board, standings: Standings) -> Iterator[str]:
    yield RANKS
    if standings.ranking is not None:
        few = len(standings.main) <= FEW_NAMES
        names = "; ".join(_heading(board.sheets[at], board.sheets) for at in standings.main)
        yield (
            f"Mean: unweighted mean of {names if few else f'all {len(standings.main)} benchmarks'}, for models that "
            "have all of them. Its interval assumes that the benchmarks are independent; its ranks use the mean of the "
            "differences on each benchmark."
        )
