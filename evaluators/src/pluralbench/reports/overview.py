"""The default report: one row for each model, as tables for reading and as rows for programs."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.metrics.frame import number_fields
from pluralbench.metrics.metric import BASELINES, SHOWN_COUNTS
from pluralbench.reports.detail import about_run
from pluralbench.reports.notes import notes
from pluralbench.reports.profile_modes import MODES_NOTE, mode_fields, mode_table, modes_of
from pluralbench.reports.sheets import Sheet, sheets_of, table_of
from pluralbench.reports.tables import Row
from pluralbench.reports.writing import Report
from pluralbench.results.runs import MISSING, Run

ABOUT = (
    "benchmark",
    "sheet",
    "items",
    "items_counted",
    "row",
    "baseline",
    "model",
    "kind",
    "run",
    "profile",
    "setting",
    "variables",
)
OF_SHEET = ("benchmark", "setting")  # baselines have these too


def overview(runs: Sequence[Run], *, wide: bool = False) -> Report:
    """Report runs with a row each, benchmark by benchmark; see `pluralbench.reports.sheets`.

    If models have runs in several profile modes, a further table compares them to the runs without user context.

    Args:
        wide: Show the interval of every number. Default: only of the overall number.

    Returns:
        For programs, each number has its bounds, `n`, `clusters` and `method`. `parts` holds the parts of the overall
        number, `sheet` names the table (only rows of one table are on the same items), and `against_none` the
        difference to the run without user context. CSV joins nested names with a dot, as `parts.Safety.low`.
    """
    sheets = sheets_of(runs)
    models = [modes_of(sheet.runs) for sheet in sheets]
    modes = [mode_table(sheet, own) for sheet, own in zip(sheets, models, strict=True) if own]
    rows = [_row(sheet, row) for sheet in sheets for row in sheet.rows]
    if modes:
        gains = mode_fields([one for own in models for one in own])
        rows = [row | {"against_none": gains.get(row["run"])} for row in rows]
    texts = [*notes(sheets), *([MODES_NOTE] if modes else [])]
    return Report([*(table_of(sheet, wide=wide) for sheet in sheets), *modes], texts, _flat(rows), rows)


def _flat(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.json_normalize(list(rows), infer_schema_length=None)
    # Columns that only some benchmarks have stand in the order of JSON, not where the first row with them stands.
    last = ("parts", *SHOWN_COUNTS, "cost")
    order = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in last]
    place = {name: number for number, name in enumerate([*order, *last])}
    columns: list[str] = sorted(frame.columns, key=lambda name: place[name.partition(".")[0]])
    return frame.select(columns)


def _row(sheet: Sheet, row: Row) -> dict[str, Any]:
    own, (run,) = not row.quiet, row.runs
    numbers: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for column, value in zip(sheet.columns, row.values, strict=True):
        numbers[column.part][column.name] = number_fields(value if isinstance(value, Estimate) else MISSING)
    about = {
        "sheet": sheet.heading,
        "items": sheet.items,
        "items_counted": run.items_counted if own else None,
        "row": row.name,
        "baseline": None if own else next(key for key, name in BASELINES.items() if name == row.name),
    } | {name: value if own or name in OF_SHEET else None for name, value in about_run(run).items()}
    return {
        **{name: about[name] for name in ABOUT},
        **numbers[False],
        "parts": numbers[True],
        **{name: run.count(name) if own else None for name in SHOWN_COUNTS},
        "cost": _cost(run) if own else None,
    }


def _cost(run: Run) -> dict[str, float | int | None]:
    cost, judging = run.result.cost, run.judged
    return {
        "seconds": None if cost is None else cost.seconds,
        "calls": None if judging is None else judging.calls,
        "prompt_tokens": None if judging is None else judging.prompt_tokens,
        "completion_tokens": None if judging is None else judging.completion_tokens,
        "cached_tokens": None if judging is None else judging.cached_tokens,
        "dollars": None if cost is None else cost.dollars,
    }
