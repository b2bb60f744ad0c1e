"""The row of a suite: a column for each benchmark or mean of benchmarks, and their mean."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs.console import clean

from pluralbench.data.suites import SuiteColumn
from pluralbench.metrics.frame import number_fields
from pluralbench.metrics.metric import SHOWN_COUNTS
from pluralbench.reports.notes import notes
from pluralbench.reports.sheets import definitions_of, sheets_of
from pluralbench.reports.tables import Column, Report, Row, Table, upright
from pluralbench.results.names import unique_names
from pluralbench.results.runs import MISSING, Run
from pluralbench.results.suite import SuiteRun

MEANS = (
    f"The {CONFIDENCE:.0%} intervals of means over several benchmarks assume that the benchmarks are independent "
    "(share no prompts)."
)


def report_suites(suites: Sequence[SuiteRun]) -> Report:
    """Report suites with a row for each model, and the benchmarks of each in a further table.

    Suites with other columns have tables of their own. For programs, `columns` are by name, with their `benchmarks`.
    """
    tables: list[Table] = []
    for same in _by_suite(suites):
        tables += [_table_of_row(same), *(_table_of_benchmarks(one) for one in same if one.runs)]
    rows = [_fields(one) for one in suites]
    frame = pl.json_normalize(rows, infer_schema_length=None)
    runs = {run.path: run for done in reversed(suites) for run in done.runs.values()}  # one of those without items
    sheets = [one._replace(rows=tuple(row for row in one.rows if not row.quiet)) for one in sheets_of([*runs.values()])]
    texts = [*_mean_notes(suites), *(notes(sheets) if sheets else [])]
    return Report(tables, texts, frame, rows, definitions=definitions_of(sheets))


def suite_section(suites: Sequence[SuiteRun]) -> Report:
    """Return what a page shows of suites: their rows, upright for a single model, and the notes on their means."""
    tables = [upright(_table_of_row(same), "column") for same in _by_suite(suites)]
    return Report(tables, [*_mean_notes(suites)], title="Suites")


def _by_suite(suites: Sequence[SuiteRun]) -> list[list[SuiteRun]]:
    by_suite: dict[str, list[SuiteRun]] = {}
    for one in suites:
        by_suite.setdefault(one.suite.model_dump_json(), []).append(one)
    return list(by_suite.values())


def _table_of_row(suites: Sequence[SuiteRun]) -> Table:
    means, columns = [one.mean for one in suites], suites[0].suite.columns
    shares = {f"mean of {mean.columns} of {mean.total}" for mean in means}
    heads = [*(column.name for column in columns), shares.pop() if len(shares) == 1 else "mean"]
    rows = [
        Row(name, [*(one.column(column) for column in columns), mean.estimate])
        for name, one, mean in zip(_names(suites), suites, means, strict=True)
    ]
    return Table(suites[0].suite.title, "model", [Column(head, part=True) for head in heads], rows)


def _names(suites: Sequence[SuiteRun]) -> list[str]:
    return unique_names([Path(one.model).name or one.model for one in suites], [one.path for one in suites])


def _table_of_benchmarks(done: SuiteRun) -> Table:
    counted = [name for name in SHOWN_COUNTS if any(run.count(name) for run in done.runs.values())]
    runs = {one.key: done.runs[one.key] for one in done.suite.benchmarks if one.key in done.runs}
    rows = [
        Row(key, [run.headline, run.items_counted, *(run.count(name) for name in counted)]) for key, run in runs.items()
    ]
    title = f"Benchmarks of {_names([done])[0]} ({done.path})"
    return Table(title, "benchmark", [Column(name) for name in ("overall", "items", *counted)], rows)


def _mean_notes(suites: Sequence[SuiteRun]) -> Iterator[str]:
    means: dict[str, list[str]] = {}
    for done, name in zip(suites, _names(suites), strict=True):
        if done.mean.columns:
            absent = [column.name for column in done.suite.columns if done.column(column).value is None]
            without = f" (without {', '.join(absent)})" if absent else ""
            means.setdefault(f"{done.mean.columns} of {done.mean.total} columns{without}", []).append(clean(name))
    for share, names in means.items():
        models = f" of {', '.join(names)}" if len(means) > 1 else ""
        yield f"Mean{models} over {share}, unweighted."
    for done in suites:
        of = f"of {clean(_names([done])[0])} " if len(suites) > 1 else ""
        why = {
            f"Columns {of}without a number, because benchmarks were not run": [
                _missing(done, column) for column in done.suite.columns if done.missing(column)
            ],
            f"Benchmarks {of}without an overall number, because most scores are invalid": [
                f"{key} ({run.unreadable})" for key, run in done.runs.items() if run.unreadable
            ],
            f"Benchmarks {of}without an overall number, because a part has no items": [
                key for key, run in done.runs.items() if run.headline.value is None and not run.unreadable
            ],
        }
        yield from (f"{begin}: {', '.join(names)}." for begin, names in why.items() if names)
    if any(len(column.benchmarks) > 1 for done in suites for column in done.suite.columns):
        yield "A column of several benchmarks is the unweighted mean of their overall numbers."
    yield MEANS


def _missing(done: SuiteRun, column: SuiteColumn) -> str:
    missing = done.missing(column)
    if len(column.benchmarks) == 1:
        return column.name
    return f"{column.name} ({len(missing)} of {len(column.benchmarks)}: {', '.join(missing)})"


def _fields(done: SuiteRun) -> dict[str, Any]:
    mean, runs = done.mean, [*done.runs.values()]
    return {
        "suite": done.suite.title,
        "model": done.model,
        "kind": runs[0].result.model.kind if runs else done.record.model.kind,
        "path": str(done.path),
        "mean": number_fields(mean.estimate) | {"columns": mean.columns, "of": mean.total},
        "columns": {
            column.name: {
                **number_fields(done.column(column)),
                "items": done.items(column),
                "benchmarks": {one.key: _benchmark(done.runs.get(one.key)) for one in column.benchmarks},
            }
            for column in done.suite.columns
        },
    }


def _benchmark(run: Run | None) -> dict[str, Any]:
    if run is None:
        return number_fields(MISSING) | dict.fromkeys(("items", *SHOWN_COUNTS, "run"))
    counts = {name: run.count(name) for name in SHOWN_COUNTS}
    return number_fields(run.headline) | {"items": run.items_counted} | counts | {"run": str(run.path)}
