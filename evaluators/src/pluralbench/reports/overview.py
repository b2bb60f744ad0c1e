"""The rows of a report, a model each: texts for tables, numbers for programs."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports import tables
from pluralbench.reports.detail import about_run
from pluralbench.reports.notes import notes
from pluralbench.reports.profile_modes import MODES_NOTE, mode_fields, mode_table, modes_of
from pluralbench.reports.sheets import Column, Row, Sheet, sheets_of
from pluralbench.reports.writing import Report
from pluralbench.results.metrics_frame import NUMBERS
from pluralbench.results.runs import Run

ABOUT = (
    "benchmark",
    "sheet",
    "items",
    "items_counted",
    "row",
    "reference",
    "model",
    "kind",
    "run",
    "profile",
    "setting",
    "variables",
)
OF_SHEET = ("benchmark", "setting")  # which reference points have too
COUNTS = ("ties", "invalid", "dropped", "equal", "truncated")


def overview(runs: Sequence[Run], *, wide: bool = False) -> Report:
    """Some runs, benchmark by benchmark, a row each; see `pluralbench.reports.sheets`.

    wide: every number has its interval, not the overall one alone. For programs numbers are as they are, each with
    bounds, n, clusters and method. `parts` holds what the overall number is made of; `sheet` names the table, since
    only its rows are on the same items. Where models have runs in several profile modes, a further table holds them
    against nothing told, and rows have `against_none`. As CSV what JSON nests has a dot in its name, as
    `parts.Safety.low`.
    """
    sheets = sheets_of(runs)
    models = [modes_of(sheet.runs) for sheet in sheets]
    modes = [mode_table(sheet, own) for sheet, own in zip(sheets, models, strict=True) if own]
    rows = [_row(sheet, row) for sheet in sheets for row in [*sheet.rows, *sheet.references]]
    if modes:
        told = mode_fields([one for own in models for one in own])
        rows = [row | {"against_none": told.get(row["run"])} for row in rows]
    said = [*notes(sheets), *([MODES_NOTE] if modes else [])]
    return Report([*(table_of(sheet, wide=wide) for sheet in sheets), *modes], said, _flat(rows), rows)


def table_of(sheet: Sheet, *, wide: bool) -> tables.Table:
    """A sheet's numbers; only the overall one has its interval, or with `wide` every number."""
    columns = [
        tables.Column(one.heading, one.kind, wide or not place, one.part) for place, one in enumerate(sheet.columns)
    ]
    rows = [
        tables.Row(row.name, [_value(row, column) for column in sheet.columns], row.reference is not None)
        for row in (*sheet.rows, *sheet.references)
    ]
    return tables.Table(sheet.heading, "model", columns, rows)


def _value(row: Row, column: Column) -> tables.Value:
    """What a row has in a column; nothing where a reference point has no such number."""
    found = row.number(column)
    return "" if row.reference and found.value is None else found


def _flat(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.json_normalize(list(rows), infer_schema_length=None)
    # A benchmark's own columns come in the order of JSON, not where the first row that has them happens to be.
    last = ("parts", *COUNTS, "cost")
    order = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in last]
    place = {name: number for number, name in enumerate([*order, *last])}
    columns: list[str] = sorted(frame.columns, key=lambda name: place[name.partition(".")[0]])
    return frame.select(columns)


def _row(sheet: Sheet, row: Row) -> dict[str, Any]:
    own = row.reference is None
    numbers: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for column in sheet.columns:
        numbers[column.part][column.key] = _fields(row.number(column))
    about = {
        "sheet": sheet.heading,
        "items": sheet.items,
        "items_counted": row.run.items_counted if own else None,
        "row": row.name,
        "reference": row.reference,
    } | {name: value if own or name in OF_SHEET else None for name, value in about_run(row.run).items()}
    return {
        **{name: about[name] for name in ABOUT},
        **numbers[False],
        "parts": numbers[True],
        **{name: row.run.count(name) if own else None for name in COUNTS},
        "cost": _cost(row.run) if own else None,
    }


def _fields(found: Estimate) -> dict[str, float | int | str | None]:
    return {name: getattr(found, name) for name in NUMBERS}


def _cost(run: Run) -> dict[str, float | int | None]:
    cost, judging = run.result.cost, run.judged
    return {
        "seconds": None if cost is None else cost.seconds,
        "calls": None if judging is None else judging.calls,
        "prompt_tokens": None if judging is None else judging.prompt_tokens,
        "completion_tokens": None if judging is None else judging.completion_tokens,
        "dollars": None if cost is None else cost.dollars,
    }
