"""Runs in detail: every config, section and category a row, one below the other, and all that is known of each run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.notes import notes
from pluralbench.reports.numbers import points, two_digits
from pluralbench.reports.sheets import sheets_of
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.reports.writing import Report
from pluralbench.results.metrics_frame import METRICS
from pluralbench.results.runs import Run, items_text

ABOUT = ("run", "model", "kind", "benchmark", "profile", "setting", "variables")
COUNTS = ("n", "ties", "invalid", "dropped", "equal", "truncated")
OVERALL, MEAN_OF_CONFIGS, LANGUAGES = "overall", "mean of configs", "languages"


COLUMNS = {
    "accuracy": Column("accuracy"),
    "exact_match": Column("exact match"),
    "drop": Column("against English", points),
    "kappa": Column("kappa", two_digits, bounds=False),
    **{name: Column(name) for name in COUNTS},
}
"""What can be known of a place of a run; a column of its details."""


def details(runs: Sequence[Run]) -> Report:
    """Every number of some runs; for programs the rows of `report_frame`."""
    frame = report_frame(runs)
    sheets = sheets_of(runs)
    tables = [_table(run, sheet.told) for sheet in sheets for run in sheet.runs]
    return Report(tables, notes(sheets, detail=True), frame)


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """The long frames of some runs in one, the best run of a benchmark first.

    The columns of `pluralbench.results.metrics_frame`, and before them `run` (its directory), `model`, `kind`,
    `benchmark`, `profile`, and of the persona judge `setting` and `variables`.
    """
    if not runs:
        return pl.DataFrame(schema=dict.fromkeys(ABOUT, pl.String) | dict(METRICS))
    frames = []
    for run in sorted(runs, key=_order):
        about = [pl.lit(value, dtype=pl.String).alias(name) for name, value in about_run(run).items()]
        frames.append(run.metrics.select(*about, pl.all()))
    return pl.concat(frames)


def about_run(run: Run) -> dict[str, str | None]:
    """What a run is of, by the columns `ABOUT`."""
    return {
        "run": str(run.path),
        "model": run.name,
        "kind": run.result.model.kind,
        "benchmark": run.config.benchmark.name,
        "profile": run.config.prompt.profile,
        "setting": run.config.judge_setting("setting"),
        "variables": run.config.judge_setting("variables"),
    }


def _order(run: Run) -> tuple[str, str, float]:
    # Settings of the persona judge ask different questions, so their accuracies are no ranking.
    value = run.headline.value
    return run.config.benchmark.name, run.config.judge_setting("setting") or "", -1.0 if value is None else -value


def places_of(run: Run) -> Iterator[tuple[str, dict[str, Estimate], dict[str, int]]]:
    """A run in detail: the overall number, then its parts, one below the other, each with its numbers and counts.

    Of 23 languages, four sections each are more than a page, so of these only the means over languages are shown; the
    long frame has them.
    """
    benchmark = run.config.benchmark.description
    changes = {metric: run.estimate(metric, "overall") for metric in ("drop", "kappa")}
    yield OVERALL, {"accuracy": run.headline} | changes, _counts(run, "pooled")
    configs = [*run.names("pooled", "config")]
    if benchmark.by_category and len(configs) > 1:
        yield MEAN_OF_CONFIGS, {metric: run.estimate(metric, "overall") for metric in ("accuracy", "exact_match")}, {}
    if benchmark.reference:
        for section in benchmark.sections:
            found = {metric: run.estimate(metric, "section", section=section) for metric in ("accuracy", "drop")}
            yield f"{LANGUAGES}: {section}", found, {}
    for config in configs:
        own = {metric: run.of(config, metric) for metric in COLUMNS if metric not in COUNTS}
        yield config, own, _counts(run, "pooled", config)
        for category in run.names("category", "subset", config=config):
            place = {"group": "category", "config": config, "subset": category}
            shares = {metric: run.estimate(metric, **place) for metric in ("accuracy", "exact_match")}
            yield f"{config}: {category}", shares, _counts(run, **place)
        for section in run.names("section", "section", config=config) if not benchmark.reference else ():
            accuracy = run.estimate("accuracy", "section", config=config, section=section)
            yield f"{config}: {section}", {"accuracy": accuracy}, {}


def _counts(run: Run, group: str, config: str | None = None, subset: str | None = None) -> dict[str, int]:
    decisions = run.estimate("accuracy", group, config=config, subset=subset).n or 0
    return {"n": decisions} | {name: run.count(name, group, config=config, subset=subset) for name in COUNTS[1:]}


def _table(run: Run, told: Sequence[str]) -> Table:
    """A run in detail; columns that say nothing are left out. told: what its benchmark was asked and others not."""
    places: list[tuple[str, Mapping[str, Value]]] = [
        (place, {**numbers, **counts}) for place, numbers, counts in places_of(run)
    ]
    kept = [name for name in COLUMNS if name == "n" or not {_known(own, name) for _, own in places} <= {"", 0}]
    size = items_text([run.items_counted], run.items_total)
    return Table(
        f"{', '.join([Path(run.name).name, run.config.benchmark.title, *told, size])} ({run.path})",
        "config",
        [COLUMNS[name] for name in kept],
        [Row(place, [_known(own, name) for name in kept]) for place, own in places],
    )


def _known(own: Mapping[str, Value], name: str) -> Value:
    """What is known of a place; nothing in place of a number that is missing, unless it is its accuracy."""
    found = own.get(name, "")
    return "" if name != "accuracy" and isinstance(found, Estimate) and found.value is None else found
