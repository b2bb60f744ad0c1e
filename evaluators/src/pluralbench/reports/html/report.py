"""`report --html` and `leaderboard`: what runs found, as one page that opens without a network."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_runs import write_text
from pluralbench_runs.progress import progress

from pluralbench.errors import EvaluationError
from pluralbench.leaderboard.findings import State
from pluralbench.reports.figures.draw import figures_of
from pluralbench.reports.figures.style import drawing
from pluralbench.reports.html.board import Board, Listed, choices_of, many
from pluralbench.reports.html.components import Link, filters, join, page, paragraph, section
from pluralbench.reports.html.figures import inlined_figure
from pluralbench.reports.html.further import downstream_section, personalized_section
from pluralbench.reports.html.items import BUDGET, browse
from pluralbench.reports.html.leaderboard import apart_table, leaderboard, runs_table
from pluralbench.reports.html.models import profiles
from pluralbench.reports.html.tables import modes_table, sheet_table
from pluralbench.reports.ranking import ranked
from pluralbench.reports.sheets import sheets_of, title_of
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

TITLE = "What reward models decide where people differ"
BOARD_TITLE = "Leaderboard: what reward models decide where people differ"
FOOT = "Made by pluralbench. This page holds all it shows and asks nothing of any network."
RANKED_TOGETHER = "Ranks are among all models, also those that are filtered out."
APART: Mapping[State, tuple[str, str, str]] = {
    "consistent": (
        "unverified",
        "Not checked against their data",
        "Runs that stand in no other table, since their data was not read.",
    ),
    "refused": (
        "refused",
        "Not accepted",
        "Runs that stand in no other table, since their files do not agree with each other or with their data.",
    ),
}
"""Where runs of these states are shown: the id of the section, its title, and why they are apart."""


class Part(NamedTuple):
    """A section of the page, what the navigation calls it, data for scripts, and what a reader will miss in it."""

    link: Link
    body: Markup
    blocks: Sequence[Markup] = ()
    missing: Sequence[str] = ()


def write_html(found: FoundRuns, out: Path) -> list[str]:
    """Write the page of some runs, and say what a reader will miss in it, a sentence each.

    Raises `EvaluationError` where there is no run, and where the file cannot be written.
    """
    if not any(found):
        raise EvaluationError("There is no run to report; give one or more run directories.")
    text, missing = html_report(found)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, text)
    except OSError as error:
        raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None
    return missing


def html_report(found: FoundRuns, checked: Sequence[Listed] = ()) -> tuple[str, list[str]]:
    """The page as text, and what a reader will miss in it.

    checked: the runs of a leaderboard, in place of those that were found. Their items are not on the page, and those
    that are not accepted are named with the reasons alone.
    """
    listed = checked or [Listed(f"run-{place}", run, run) for place, run in enumerate(found.runs, 1)]
    accepted = [one.run for one in listed if one.accepted]
    parts = list(_parts(found, listed))
    text = page(
        BOARD_TITLE if checked else TITLE,
        join(part.body for part in parts),
        lead=_lead(found, accepted),
        navigation=[part.link for part in parts],
        foot=paragraph(FOOT),
        blocks=[each for part in parts for each in part.blocks],
    )
    return text, [note for part in parts for note in part.missing]


def _parts(found: FoundRuns, listed: Sequence[Listed]) -> Iterator[Part]:
    sheets = sheets_of([one.run for one in listed if one.accepted])
    with progress("Comparing models", len(sheets)) as meter:
        ranks = []
        for sheet in sheets:
            ranks.append(ranked(sheet))
            meter.advance()
    board = Board(listed, sheets, ranks)
    if sheets:
        choices = choices_of(board.accepted)
        chosen = [filters(choices, RANKED_TOGETHER)] if choices else []
        yield _part("Leaderboard", "leaderboard", *chosen, leaderboard("leaderboard-table", board))
        yield _part("Runs", "runs", runs_table("runs-table", board))
        yield from _benchmarks(board)
        yield _part("Models", "models", profiles(board))
    for state, (key, title, caption) in APART.items():
        apart = [one for one in listed if one.checked is not None and one.checked.state == state]
        if apart:
            yield _part(title, key, apart_table(f"{key}-table", caption, apart))
    among = list(dict.fromkeys([*board.models, *(name for one in found.downstream for name in one.result.rewards)]))
    with drawing():
        for place, one in enumerate(found.personalized):
            key = f"personalized-models-{place}"
            yield Part(Link(f"#{key}", f"Profiles: {one.path.name}"), personalized_section(key, one))
        for place, two in enumerate(found.downstream):
            key = f"downstream-{place}"
            yield Part(Link(f"#{key}", f"Policy: {two.path.name}"), downstream_section(key, two, among))


def _part(title: str, key: str, *parts: Markup) -> Part:
    return Part(Link(f"#{key}", title), section(title, key, *parts))


def _benchmarks(board: Board) -> Iterator[Part]:
    """A section of each benchmark. Each sheet's items may have as much of the room as the others leave it."""
    by_benchmark: dict[str, list[int]] = {}
    for at, sheet in enumerate(board.sheets):
        by_benchmark.setdefault(sheet.runs[0].config.benchmark.name, []).append(at)
    every = [one.original for one in board.accepted]
    budget, left = BUDGET, len(board.sheets)
    with progress("Writing the page", len(board.sheets)) as meter:
        for number, places in enumerate(by_benchmark.values()):
            key = f"benchmark-{number}"
            own = [run for at in places for run in board.sheets[at].runs]
            parts: list[Markup] = []
            items, blocks, missing = [], [], []
            for at in places:
                sheet = board.sheets[at]
                parts.append(sheet_table(board, at))
                modes = modes_table(f"modes-{at}", sheet)
                parts += [] if modes is None else [modes]
                if board.by_path[sheet.runs[0].path].checked is None:
                    browsed = browse(f"items-{at}", sheet, budget // left)
                    budget, left = budget - browsed.size, left - 1
                    items.append(section(f"Items: {sheet.heading}", f"browse-{at}", browsed.shown, level=3))
                    blocks += browsed.blocks
                    missing += [browsed.note] if browsed.note else []
                meter.advance()
            title = title_of(own)
            originals = [board.by_path[run.path].original for run in own]
            body = section(title, key, *parts, *_figures(key, originals, every), *items)
            yield Part(Link(f"#{key}", title), body, blocks, missing)


def _figures(key: str, runs: Sequence[Run], among: Sequence[Run]) -> list[Markup]:
    """The figures of a benchmark, in the colours of all runs."""
    with drawing():
        made = [(stem, draw()) for stem, draw in figures_of(runs, among=among)]
        return [
            inlined_figure(f"{key}-figure-{stem}", f"{key}-svg-{stem}", one) for stem, one in made if one is not None
        ]


def _lead(found: FoundRuns, runs: Sequence[Run]) -> str:
    """How much of what the page is of."""
    counts = [
        many(len(runs), "run"),
        many(len({run.name for run in runs}), "model"),
        many(len({run.config.benchmark.name for run in runs}), "benchmark"),
        many(len(found.personalized), "study of profiles", "studies of profiles"),
        many(len(found.downstream), "policy", "policies"),
    ]
    said = [count for count in counts if not count.startswith("0 ")]
    return f"{', '.join(said) or 'No run is accepted'}."
