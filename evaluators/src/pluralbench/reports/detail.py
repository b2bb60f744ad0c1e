"""Runs in detail: every config, section and category a row, one below the other, and all that is known of each run."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.notes import notes
from pluralbench.reports.numbers import Kind, percent, points, two_digits
from pluralbench.reports.sheets import sheets_of
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.reports.writing import Report
from pluralbench.results.metrics_frame import METRICS
from pluralbench.results.runs import MISSING, Run, items_text

ABOUT = ("run", "model", "kind", "benchmark", "profile", "setting", "variables")
COUNTS = ("n", "ties", "invalid", "dropped", "equal", "truncated")
OVERALL, MEAN_OF_CONFIGS, LANGUAGES = "overall", "mean of configs", "languages"


class Place(NamedTuple):
    """A line of a run's details: a place of the run and what is known of it."""

    place: str
    accuracy: Estimate
    counts: dict[str, int]
    exact_match: Estimate = MISSING
    drop: Estimate = MISSING
    kappa: Estimate = MISSING


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
        "setting": run.config.asked("setting"),
        "variables": run.config.asked("variables"),
    }


def _order(run: Run) -> tuple[str, str, float]:
    # Settings of the persona judge ask different questions, so their accuracies are no ranking.
    value = run.headline.value
    return run.config.benchmark.name, run.config.asked("setting") or "", -1.0 if value is None else -value


def places_of(run: Run) -> Iterator[Place]:
    """A run in detail: the overall number, then its parts, one below the other.

    Of 23 languages, four sections each are more than a page, so of these only the means over languages are shown; the
    long frame has them.
    """
    benchmark = run.config.benchmark.description
    drop, kappa = (run.estimate(metric, "overall") for metric in ("drop", "kappa"))
    yield Place(OVERALL, run.headline, _counts(run, "pooled"), drop=drop, kappa=kappa)
    configs = [*run.names("pooled", "config")]
    if benchmark.by_category and len(configs) > 1:
        means = [run.estimate(metric, "overall") for metric in ("accuracy", "exact_match")]
        yield Place(MEAN_OF_CONFIGS, means[0], {}, means[1])
    if benchmark.reference:
        for section in benchmark.sections:
            found, drop = (run.estimate(metric, "section", section=section) for metric in ("accuracy", "drop"))
            yield Place(f"{LANGUAGES}: {section}", found, {}, drop=drop)
    for config in configs:
        accuracy, exact, drop, kappa = (run.of(config, m) for m in ("accuracy", "exact_match", "drop", "kappa"))
        yield Place(config, accuracy, _counts(run, "pooled", config), exact, drop, kappa)
        for category in run.names("category", "subset", config=config):
            own, exact = (
                run.estimate(m, "category", config=config, subset=category) for m in ("accuracy", "exact_match")
            )
            yield Place(f"{config}: {category}", own, _counts(run, "category", config, category), exact)
        for section in run.names("section", "section", config=config) if not benchmark.reference else ():
            yield Place(f"{config}: {section}", run.estimate("accuracy", "section", config=config, section=section), {})


def _counts(run: Run, group: str, config: str | None = None, subset: str | None = None) -> dict[str, int]:
    decisions = run.estimate("accuracy", group, config=config, subset=subset).n or 0
    return {"n": decisions} | {name: run.count(name, group, config=config, subset=subset) for name in COUNTS[1:]}


def _table(run: Run, told: Sequence[str]) -> Table:
    """A run in detail; columns that say nothing are left out. told: what its benchmark was asked and others not."""
    places = list(places_of(run))
    columns: dict[str, tuple[Kind, list[Value]]] = {
        "accuracy": (percent, [place.accuracy for place in places]),
        "exact match": (percent, _there(place.exact_match for place in places)),
        "against English": (points, _there(place.drop for place in places)),
        "kappa": (two_digits, _there(place.kappa for place in places)),
        **{name: (percent, [place.counts.get(name, "") for place in places]) for name in COUNTS},
    }
    kept = {name: one for name, one in columns.items() if name == "n" or not set(one[1]) <= {"", 0}}
    size = items_text([run.items_counted], run.items_there)
    return Table(
        f"{', '.join([Path(run.name).name, run.config.benchmark.title, *told, size])} ({run.path})",
        "config",
        [Column(name, kind, name != "kappa") for name, (kind, _) in kept.items()],
        [
            Row(place.place, values)
            for place, values in zip(places, zip(*(values for _, values in kept.values()), strict=True), strict=True)
        ],
    )


def _there(found: Iterable[Estimate]) -> list[Value]:
    """Numbers, and nothing where they are missing."""
    return ["" if one.value is None else one for one in found]
