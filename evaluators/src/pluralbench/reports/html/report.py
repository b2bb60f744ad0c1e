"""`report --html`: what runs found, as one page that opens without a network."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_runs.progress import progress

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures.draw import figures_of
from pluralbench.reports.figures.style import drawing
from pluralbench.reports.html.components import Link, figure, join, page, paragraph, section
from pluralbench.reports.html.figures import inlined
from pluralbench.reports.html.further import downstream_section, personalized_section
from pluralbench.reports.html.items import BUDGET, browse
from pluralbench.reports.html.leaderboard import Board, leaderboard
from pluralbench.reports.html.models import profiles
from pluralbench.reports.html.tables import modes_table, sheet_table
from pluralbench.reports.ranking import ranked
from pluralbench.reports.sheets import Sheet, sheets_of
from pluralbench.results.finding import Found
from pluralbench.results.runs import Run

TITLE = "What reward models decide where people differ"


class Part(NamedTuple):
    """A section of the page, what the navigation calls it, data for scripts, and what a reader will miss in it."""

    link: Link
    body: Markup
    blocks: Sequence[Markup] = ()
    missing: Sequence[str] = ()


class Names(NamedTuple):
    """The ids on the page: of each sheet's table, and of each model's profile by the model's name."""

    sheets: Sequence[str]
    models: Mapping[str, str]


def write_html(found: Found, out: Path) -> list[str]:
    """Write the page of some runs, and say what a reader will miss in it, a sentence each.

    Raises `EvaluationError` where there is no run, and where the file cannot be written.
    """
    if not any(found):
        raise EvaluationError("There is no run to report; give one or more run directories.")
    text, missing = html_report(found)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None
    return missing


def html_report(found: Found) -> tuple[str, list[str]]:
    """The page as text, and what a reader will miss in it."""
    sheets = sheets_of(found.runs)
    models = dict.fromkeys(row.run.name for sheet in sheets for row in sheet.rows)
    names = Names(
        [f"table-{place}" for place in range(len(sheets))],
        {name: f"model-{place}" for place, name in enumerate(models)},
    )
    parts = list(_parts(found, sheets, names))
    text = page(
        TITLE,
        join(part.body for part in parts),
        lead=_lead(found, sheets),
        navigation=[part.link for part in parts],
        foot=paragraph("Made by pluralbench. This page holds all it shows and asks nothing of any network."),
        scripts=["items"],
        styles=["items"],
        blocks=[each for part in parts for each in part.blocks],
    )
    return text, [note for part in parts for note in part.missing]


def _parts(found: Found, sheets: Sequence[Sheet], names: Names) -> Iterator[Part]:
    runs = found.runs
    if sheets:
        with progress("Comparing models", len(sheets)) as meter:
            ranks = []
            for sheet in sheets:
                ranks.append(ranked(sheet))
                meter.advance()
        board = Board(sheets, ranks, [f"#{key}" for key in names.sheets])
        links = {name: f"#{key}" for name, key in names.models.items()}
        table = leaderboard("leaderboard-table", board, links)
        yield Part(Link("#leaderboard", "Leaderboard"), section("Leaderboard", "leaderboard", table))
        yield from _benchmarks(board, names, runs)
        yield Part(Link("#models", "Models"), section("Models", "models", profiles(sheets, names.models)))
    among = list(dict.fromkeys([*names.models, *(name for one in found.downstream for name in one.record.rewards)]))
    with drawing():
        for place, one in enumerate(found.personalized):
            key = f"personalized-models-{place}"
            yield Part(Link(f"#{key}", f"Profiles: {one.path.name}"), personalized_section(key, one))
        for place, two in enumerate(found.downstream):
            key = f"downstream-{place}"
            yield Part(Link(f"#{key}", f"Policy: {two.path.name}"), downstream_section(key, two, among))


def _benchmarks(board: Board, names: Names, runs: Sequence[Run]) -> Iterator[Part]:
    """A section of each benchmark. Each sheet's items may have as much of the room as the others leave it."""
    by_benchmark: dict[str, list[int]] = {}
    for place, sheet in enumerate(board.sheets):
        by_benchmark.setdefault(sheet.runs[0].record.benchmark.name, []).append(place)
    budget, left = BUDGET, len(board.sheets)
    with progress("Writing the page", len(board.sheets)) as meter:
        for number, places in enumerate(by_benchmark.values()):
            key = f"benchmark-{number}"
            own = [run for place in places for run in board.sheets[place].runs]
            parts: list[Markup] = []
            items, blocks, missing = [], [], []
            for place in places:
                sheet = board.sheets[place]
                links = [f"#{names.models[row.run.name]}" for row in sheet.rows]
                parts.append(sheet_table(names.sheets[place], sheet, board.ranks[place], links))
                modes = modes_table(f"modes-{place}", sheet)
                parts += [] if modes is None else [modes]
                browsed = browse(f"items-{place}", sheet, budget // left)
                budget, left = budget - browsed.size, left - 1
                items.append(section(f"Items: {sheet.heading}", f"browse-{place}", browsed.shown, level=3))
                blocks += browsed.blocks
                missing += [browsed.note] if browsed.note else []
                meter.advance()
            title = board.sheets[places[0]].title
            body = section(title, key, *parts, *benchmark_figures(key, own, runs), *items)
            yield Part(Link(f"#{key}", title), body, blocks, missing)


def benchmark_figures(key: str, runs: Sequence[Run], among: Sequence[Run]) -> Iterator[Markup]:
    """The figures of a benchmark, in the colours of all runs."""
    with drawing():
        made = [(stem, draw()) for stem, draw in figures_of(runs, among=among)]
        shown = [(stem, inlined(one, f"{key}-svg-{stem}")) for stem, one in made if one is not None]
    for stem, one in shown:
        yield figure(f"{key}-figure-{stem}", one.svg, one.title, one.note)


def _lead(found: Found, sheets: Sequence[Sheet]) -> str:
    models = len({row.run.name for sheet in sheets for row in sheet.rows})
    counts = {
        "run": len(found.runs),
        "model": models,
        "benchmark": len({sheet.title for sheet in sheets}),
        "study of profiles": len(found.personalized),
        "policy": len(found.downstream),
    }
    plural = {"study of profiles": "studies of profiles", "policy": "policies"}
    said = [f"{n:,} {what if n == 1 else plural.get(what, f'{what}s')}" for what, n in counts.items() if n]
    return f"{', '.join(said)}."
