"""The rows of a report, a model each: texts for tables, numbers for programs."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.footnotes import footnotes
from pluralbench.reports.layout import DASH, Heading, Line, Page
from pluralbench.reports.notes import mark
from pluralbench.reports.profile_modes import mode_fields, mode_notes, mode_page, modes_of
from pluralbench.reports.sheets import Column, Row, Sheet, sheets_of
from pluralbench.reports.writing import Content
from pluralbench.results.metrics_frame import NUMBERS
from pluralbench.results.runs import Run

ABOUT = (
    "benchmark",
    "sheet",
    "items",
    "row",
    "reference",
    "model",
    "kind",
    "run",
    "profile",
    "setting",
    "variables",
)
COUNTS = ("ties", "invalid", "dropped", "equal", "truncated")


def overview(runs: Sequence[Run], *, wide: bool = False) -> Content:
    """Some runs, benchmark by benchmark, a row each; see `pluralbench.reports.sheets`.

    wide: every number has its interval, not the overall one alone. For programs numbers are as they are, each with
    bounds, n, clusters and method. `parts` holds what the overall number is made of; `sheet` names the table, since
    only its rows are on the same items. Where models have runs in several profile modes, a further page holds them
    against nothing told, and rows have `against_none`. As CSV what JSON nests has a dot in its name, as
    `parts.Safety.low`.
    """
    sheets = sheets_of(runs)
    models = [modes_of(sheet.runs) for sheet in sheets]
    modes = [mode_page(sheet, own) for sheet, own in zip(sheets, models, strict=True) if own]
    rows = [_row(sheet, row) for sheet in sheets for row in [*sheet.rows, *sheet.references]]
    if modes:
        told = mode_fields([one for own in models for one in own])
        rows = [row | {"against_none": told.get(row["run"])} for row in rows]
    pages = [*(_page(sheet, wide=wide) for sheet in sheets), *modes]
    return Content(pages, [*footnotes(sheets, wide=wide), *mode_notes(modes)], rows, _flat(rows))


def _page(sheet: Sheet, *, wide: bool) -> Page:
    """A sheet as texts, in per cent; only the overall number has its interval, or with `wide` every number."""
    rows = [*sheet.rows, *sheet.references]
    columns = [_texts(column, rows, bounds=wide or not place) for place, column in enumerate(sheet.columns)]
    lines = (
        Line(row.name, tuple(cells), row.reference is not None)
        for row, cells in zip(rows, zip(*columns, strict=True), strict=True)
    )
    return Page(sheet.heading, "model", tuple(Heading(one.heading, one.part) for one in sheet.columns), tuple(lines))


def _texts(column: Column, rows: Sequence[Row], *, bounds: bool) -> list[str]:
    """A column's numbers, with points and brackets below each other."""
    found = [_numbers(column, row.number(column), bounds=bounds) for row in rows]
    widest = [max(map(len, side)) for side in zip(*found, strict=True)]
    any_bounds = widest[1] > 0
    texts = []
    for row, (number, low, high, dagger) in zip(rows, found, strict=True):
        value = number or ("" if row.reference else DASH)
        interval = f" [{low:>{widest[1]}}, {high:>{widest[2]}}]" if low else ""
        text = f"{value:>{widest[0]}}{interval}{dagger}"
        texts.append(text.ljust(sum(widest) + 5) if any_bounds else text.strip())
    return texts


def _numbers(column: Column, found: Estimate, *, bounds: bool) -> tuple[str, str, str, str]:
    """A number, its bounds, and the mark of an interval that is not the usual one; empty where they are missing."""
    scale, form = (1, ".2f") if column.place.metric == "kappa" else (100, "+.1f" if column.shift else ".1f")
    if found.value is None:
        return "", "", "", ""
    if not bounds or found.low is None or found.high is None:
        return f"{scale * found.value:{form}}", "", "", ""
    low, high = f"{scale * found.low:{form}}", f"{scale * found.high:{form}}"
    return f"{scale * found.value:{form}}", low, high, mark(found)


def _flat(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.json_normalize(list(rows), infer_schema_length=None)
    # A benchmark's own columns come in the order of JSON, not where the first row that has them happens to be.
    last = ("parts", *COUNTS, "cost")
    order = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in last]
    place = {name: number for number, name in enumerate([*order, *last])}
    columns: list[str] = sorted(frame.columns, key=lambda name: place[name.partition(".")[0]])
    return frame.select(columns)


def _row(sheet: Sheet, row: Row) -> dict[str, Any]:
    record, own = row.run.record, row.reference is None
    numbers: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for column in sheet.columns:
        numbers[column.part][column.key] = _fields(row.number(column))
    about = (
        record.benchmark.name,
        sheet.heading,
        sheet.items,
        row.name,
        row.reference,
        row.run.name if own else None,
        record.model.kind if own else None,
        str(row.run.path) if own else None,
        record.prompt.profile if own else None,
        record.prompt.setting,
        record.prompt.variables if own else None,
    )
    counts = {name: row.run.count(name) if own else None for name in COUNTS}
    return {
        **dict(zip(ABOUT, about, strict=True)),
        **numbers[False],
        "parts": numbers[True],
        **counts,
        "cost": _cost(row.run) if own else None,
    }


def _fields(found: Estimate) -> dict[str, float | int | str | None]:
    return {name: getattr(found, name) for name in NUMBERS}


def _cost(run: Run) -> dict[str, float | int | None]:
    cost, judging = run.record.cost, run.record.judging
    return {
        "seconds": None if cost is None else cost.seconds,
        "calls": None if judging is None else judging.calls,
        "prompt_tokens": None if judging is None else judging.prompt_tokens,
        "completion_tokens": None if judging is None else judging.completion_tokens,
        "dollars": None if cost is None else cost.dollars,
    }
