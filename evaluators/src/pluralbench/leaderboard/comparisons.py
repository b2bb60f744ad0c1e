"""Comparisons of a run's files with what its items, its data and its recorded calls give."""

from collections.abc import Iterator
from typing import Any

import polars as pl
from pluralbench_runs import digest, plural

from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.evaluation.loading import LoadedBenchmark, benchmark_record
from pluralbench.evaluation.reloading import RunData
from pluralbench.metrics.frame import KEY, key_text
from pluralbench.metrics.table import METRICS
from pluralbench.results.checks import Finding
from pluralbench.results.item_rows import item_columns
from pluralbench.results.run_files import ITEMS_FILE, METRICS_FILE, RUN_FILE
from pluralbench.results.runs import Run

Findings = Iterator[Finding]
SAME = 1e-9
"""Absolute and relative tolerance between two computations of a number."""


def compare_columns(run: Run) -> Findings:
    """Compare the columns of the items with those of the run's command."""
    differ = item_columns(run.config, run.items).keys() ^ {*run.items.columns}
    if differ:
        yield Finding("error", f"{ITEMS_FILE} lacks or adds the columns {', '.join(sorted(differ))} (`{run.verb}`).")


def without_texts(metrics: pl.DataFrame) -> pl.DataFrame:
    """Return the metrics that follow from a run alone, since their numbers need no text."""
    of_texts = [name for name, metric in METRICS.items() if metric.of_texts]
    return metrics.filter(pl.col("baseline").is_null(), ~pl.col("metric").is_in(of_texts))


def compare_metrics(recorded: pl.DataFrame, again: pl.DataFrame, source: str) -> Findings:
    """Compare all numbers and intervals with recomputed ones, and name the source of these."""
    both = recorded.join(again, on=KEY, how="full", suffix="_again", nulls_equal=True, coalesce=True)
    wrong = both.filter(~pl.all_horizontal(*map(_close, ("value", "low", "high", "n", "clusters")), _same("interval")))
    if wrong.height:
        row = wrong.row(0, named=True)
        ours, theirs = _number(row, ""), _number(row, "_again")
        yield Finding(
            "error",
            f"{METRICS_FILE} has {plural(wrong.height, 'row')} with a number or interval that does not follow from "
            f"{source}, such as {key_text(row)}: {ours} instead of {theirs}.",
        )


def _same(name: str) -> pl.Expr:
    return pl.col(name).eq_missing(pl.col(f"{name}_again"))


def _close(name: str) -> pl.Expr:
    one, other = pl.col(name).cast(pl.Float64), pl.col(f"{name}_again").cast(pl.Float64)
    return _same(name) | ((one - other).abs() <= SAME * pl.max_horizontal(1.0, one.abs())).fill_null(value=False)


def _number(row: dict[str, Any], end: str) -> str:
    value, low, high, n = (row[f"{name}{end}"] for name in ("value", "low", "high", "n"))
    over = f" over {n}" if n else ""
    return "none" if value is None else f"{value:.6g}{over}" + ("" if low is None else f" [{low:.6g}, {high:.6g}]")


def compare_rows(run: Run, name: str, again: pl.DataFrame, place: str) -> Findings:
    """Compare the rows of a frame of the run, in order, with reproduced ones."""
    try:
        recorded = run.frame(name)
    except RunError as error:
        yield Finding("error", str(error))
        return
    if recorded.height != again.height:
        yield Finding("error", f"{name}.parquet has {recorded.height:,} rows; {place} gives {again.height:,}.")
        return
    differs = {column: recorded[column].ne_missing(again[column]) for column in again.columns}
    rows = pl.DataFrame(differs).select(pl.any_horizontal(pl.all())).to_series()
    if rows.any():
        names = ", ".join(f"`{column}`" for column, mask in differs.items() if mask.any())
        ids = again["id"].filter(rows).to_list()
        other = f"another {names} than follows from {place} (ids {first_ids(ids)})"
        yield Finding("error", f"{name}.parquet has in {len(ids):,} rows {other}.")


def compare_records(run: Run, data: RunData) -> Findings:
    """Compare the record of the benchmark and the digests with those that the data gives."""
    benchmark, record, place = run.config.benchmark, run.config.data, data.items.location
    described = data.benchmark if isinstance(data, LoadedBenchmark) else benchmark.description
    again = benchmark_record(benchmark.name, described, record.location, record.revision)
    if names := ", ".join(f"`{name}`" for name, value in benchmark if value != getattr(again, name)):
        yield Finding("error", f"{RUN_FILE} records another {names} of the benchmark than follows from {place}.")
    rules = digest(described.model_dump(mode="json")) if isinstance(data, LoadedBenchmark) else None
    if (record.digest, record.benchmark_digest) != (data.items.digest, rules):
        yield Finding("error", f"{RUN_FILE} records other digests of the data or its rules than those of {place}.")


def notes_of(run: Run, moved: str | None = None) -> Findings:
    """Yield what no comparison shows: own rules, inputs that were too long, and the place of the data."""
    benchmark, record = run.config.benchmark, run.config.data
    registered = known_benchmarks().get(benchmark.name)
    if registered is None:
        yield Finding("note", f"`{benchmark.name}` is not a benchmark of pluralbench; the run's author described it.")
    else:
        own, subsets = benchmark.description, run.items.select("config", "id", "subset").unique()["subset"]
        # These follow from the command and its data.
        of_the_data = {name: getattr(own, name) for name in ("columns", "required", "strata", "train_split")}
        rules = registered.fit_to(subsets).model_copy(update=of_the_data)
        if names := ", ".join(f"`{name}`" for name, value in own if value != getattr(rules, name)):
            yield Finding("note", f"Its rules differ from those of `{benchmark.name}`: {names}.")
    if run.scored is not None and (long := run.scored.items_truncated + run.scored.items_dropped):
        yield Finding(
            "note",
            f"{plural(long, 'item')} truncated or dropped as too long; only scoring again shows whether they are.",
        )
    if moved is not None and record.revision is not None:
        recorded = f"{record.location} at revision {record.revision[:12]}"
        yield Finding("note", f"It was checked against {moved}; that its data is {recorded} is only recorded.")
