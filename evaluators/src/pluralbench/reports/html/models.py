"""Each model by itself: its runs with their checks, and their numbers across languages, categories and personas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from markupsafe import Markup
from pluralbench_measures.bootstrap import Estimate
from pluralbench_schemas.languages import LANGUAGES

from pluralbench.leaderboard.findings import Checked, State
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
from pluralbench.results.metrics_frame import NUMBERS
from pluralbench.results.runs import Run

CHECKED: Mapping[State, str] = {
    "checked": "Checked: its items, outcomes, metrics and intervals are what its data, its scores and its recorded "
    "replies give. Whether these are the model's own was not tried.",
    "verified": "Verified: as its data gives, and some items were asked for again.",
}
PLACE = ["config", "section", "subset"]
SHOWN = ("accuracy", "exact_match")
"""The metrics of a profile, a column each."""


class Kind(NamedTuple):
    """A group of places in the metrics, and what a table of them is called."""

    group: str
    title: str


KINDS = (
    Kind("config", "parts"),
    Kind("apart", "parts outside the overall number"),
    Kind("section", "sections"),
    Kind("category", "categories"),
    Kind("task", "tasks"),
    Kind("resource", "languages by resources"),
    Kind("class", "languages by Joshi's class"),
    Kind("family", "languages by family"),
    Kind("script", "languages by script"),
    Kind("subset", "subsets"),
)


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


def _checks(checked: Checked) -> Iterator[Markup]:
    """How far a run was checked, and what was found, a line each."""
    yield paragraph(f"{CHECKED[checked.state]} {checked.rescored}".strip())
    if checked.findings:
        yield paragraph("What is unusual about it:")
        yield items(clean(found.text) for found in checked.findings)
    else:
        yield paragraph("Nothing about it is unusual.")


def part_tables(key: str, sheet: Sheet, row: Line) -> Iterator[Markup]:
    """A table for each kind of place at which a run has more than one number."""
    for kind in KINDS:
        rows = _places(row.run, kind.group)
        if len(rows) > 1:
            yield _table(f"{key}-{kind.group}", sheet, row, _title(kind, row.run), rows)


def _title(kind: Kind, run: Run) -> str:
    in_languages = run.config.benchmark.description.reference is not None
    return "languages" if kind.group == "config" and in_languages else kind.title


def _places(run: Run, group: str) -> list[dict[str, Any]]:
    """The numbers of a group, a row a place, with an estimate by metric."""
    rows = run.metrics.filter(pl.col("group") == group, pl.col("metric").is_in([*SHOWN, "coin"]))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        place = tuple(row[name] for name in PLACE)
        numbers = found.setdefault(place, {"place": place})
        numbers[row["metric"]] = Estimate(*(row[name] for name in NUMBERS))
    return [one for one in found.values() if "accuracy" in one]


def _table(key: str, sheet: Sheet, row: Line, title: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    metrics = [metric for metric in SHOWN if any(metric in one for one in rows)]
    marks = {"accuracy": 0.5}
    scales = {
        metric: scale_of((one.get(metric, Estimate(None)) for one in rows), marks.get(metric)) for metric in metrics
    }
    lines = []
    for one in rows:
        cells = [number(one.get(metric, Estimate(None)), scale=scales[metric]) for metric in metrics]
        coin = number(one.get("coin", Estimate(None)))
        n = one["accuracy"].n
        lines.append(Row((Cell(_named(one["place"])), *cells, coin, Cell("" if n is None else f"{n:,}", n or ""))))
    heads = [Head("part", number=False), *(Head(metric.replace("_", " ")) for metric in metrics)]
    heads += [Head("a coin"), Head("decisions")]
    caption = f"{clean(row.name)} on {sheet.heading}: {title}, in %. The mark in a bar of accuracy is at 50."
    return table(key, caption, heads, lines)


def _named(place: Sequence[str | None]) -> str:
    """A place in words; a language by its name."""
    words = [LANGUAGES[one].name if one in LANGUAGES else one for one in place if one is not None]
    return clean(": ".join(words))
