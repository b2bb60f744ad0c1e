"""Each model by itself: its runs with their checks, and their numbers across languages, categories and personas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup
from pluralbench_schemas.languages import LANGUAGES

from pluralbench.leaderboard.findings import CheckResult, State
from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.html.board import Board, Listed, told_of
from pluralbench.reports.html.components import (
    Cell,
    Head,
    Row,
    details,
    items,
    join,
    number,
    paragraph,
    scale_of,
    section,
    table,
)
from pluralbench.reports.html.sources import sources
from pluralbench.reports.layout import clean
from pluralbench.reports.numbers import with_interval
from pluralbench.reports.sheets import Row as Line
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import MISSING, Run

CHECKED: Mapping[State, str] = {
    "checked": "Checked: its items, outcomes, metrics and intervals are what its data, its scores and its recorded "
    "replies give. Whether these are the model's own was not tried.",
    "verified": "Verified: as its data gives, and some items were asked for again.",
}
PLACE = ["config", "section", "subset"]
SHOWN = ("accuracy", "exact_match")
"""The metrics of a profile, a column each."""


KINDS = {
    "config": "parts",
    "excluded": "parts outside the overall number",
    "section": "sections",
    "category": "categories",
    "task": "tasks",
    "resource": "languages by resources",
    "class": "languages by Joshi's class",
    "family": "languages by family",
    "script": "languages by script",
    "subset": "subsets",
}
"""Groups of places in the metrics, and what a table of each is called."""


def profiles(board: Board) -> Markup:
    """All models, each folded under its name, with its runs: their numbers, parts, checks and origin."""
    return join(_model(name, key, board) for name, key in board.models.items())


def _model(name: str, key: str, board: Board) -> Markup:
    own = [one for one in board.accepted if one.run.name == name]
    model = own[0].run.result.model
    parameters = "" if model.parameters is None else f", {model.parameters:,} parameters"
    parts = [paragraph(f"Kind: {kind_name(model.kind).lower()}{parameters}.")]
    return details(clean(name), *parts, *(_run(one, board) for one in own), key=key, kind="model")


def _run(one: Listed, board: Board) -> Markup:
    at, place = board.rows[one.run.path]
    sheet, told = board.sheets[at], told_of(one.run)
    heading = f"{clean(sheet.rows[place].name)} on {board.called(at)}{'' if told == 'nothing' else f', told {told}'}"
    parts = [paragraph(f"Overall: {with_interval(one.run.headline) or 'no number'}.")]
    parts += part_tables(one.key, sheet, sheet.rows[place])
    parts += [] if one.checked is None else _checks(one.checked)
    return section(heading, one.key, *parts, sources([one.run], [sheet.rows[place].name]), level=3)


def _checks(checked: CheckResult) -> Iterator[Markup]:
    """How far a run was checked, and what was found, a line each."""
    yield paragraph(f"{CHECKED[checked.state]} {checked.rescored}".strip())
    if checked.findings:
        yield paragraph("What is unusual about it:")
        yield items(clean(found.text) for found in checked.findings)
    else:
        yield paragraph("Nothing about it is unusual.")


def part_tables(key: str, sheet: Sheet, row: Line) -> Iterator[Markup]:
    """A table for each kind of place at which a run has more than one number."""
    in_languages = row.run.config.benchmark.description.reference is not None
    for group, title in KINDS.items():
        rows = row.run.metrics.filter(group=group, metric="accuracy")
        if rows.height > 1:
            called = "languages" if group == "config" and in_languages else title
            caption = f"{clean(row.name)} on {sheet.heading}: {called}, in %. The mark in a bar of accuracy is at 50."
            yield _table(f"{key}-{group}", caption, row.run, group, rows.select(PLACE).to_dicts())


def _table(key: str, caption: str, run: Run, group: str, places: Sequence[Mapping[str, str | None]]) -> Markup:
    every = {metric: [run.estimate(metric, group, **place) for place in places] for metric in SHOWN}
    shown = {metric: own for metric, own in every.items() if any(one is not MISSING for one in own)}
    scales = {metric: scale_of(own, 0.5 if metric == "accuracy" else None) for metric, own in shown.items()}
    lines = []
    for at, place in enumerate(places):
        cells = [number(own[at], scale=scales[metric]) for metric, own in shown.items()]
        coin, n = number(run.estimate("coin", group, **place)), every["accuracy"][at].n
        lines.append(Row((Cell(_named(place.values())), *cells, coin, Cell("" if n is None else f"{n:,}", n or ""))))
    heads = [Head("part", number=False), *(Head(metric.replace("_", " ")) for metric in shown)]
    heads += [Head("a coin"), Head("decisions")]
    return table(key, caption, heads, lines)


def _named(place: Iterable[str | None]) -> str:
    """A place in words; a language by its name."""
    words = [LANGUAGES[one].name if one in LANGUAGES else one for one in place if one is not None]
    return clean(": ".join(words))
