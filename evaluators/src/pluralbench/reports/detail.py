"""Runs in detail: every config, section and category a row, one below the other, and all that is known of each run."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.layout import DASH, Heading, Line, Page
from pluralbench.reports.notes import mark, mark_notes, notes, with_interval
from pluralbench.reports.writing import Content
from pluralbench.results.metrics_frame import METRICS
from pluralbench.results.runs import MISSING, Run

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


def details(runs: Sequence[Run]) -> Content:
    """Every number of some runs; for programs the rows of `report_frame`."""
    frame = report_frame(runs)
    pages = [_page(run) for run in sorted(runs, key=_order)]
    return Content(pages, _notes(runs), frame.to_dicts(), frame)


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """The long frames of some runs in one, the best run of a benchmark first.

    The columns of `pluralbench.results.metrics_frame`, and before them `run` (its directory), `model`, `kind`,
    `benchmark`, `profile`, and of the persona judge `setting` and `variables`.
    """
    if not runs:
        return pl.DataFrame(schema=dict.fromkeys(ABOUT, pl.String) | dict(METRICS))
    frames = []
    for run in sorted(runs, key=_order):
        about = [pl.lit(value, dtype=pl.String).alias(name) for name, value in _about(run).items()]
        frames.append(run.metrics.select(*about, pl.all()))
    return pl.concat(frames)


def _about(run: Run) -> dict[str, str | None]:
    record = run.record
    return {
        "run": str(run.path),
        "model": run.name,
        "kind": record.model.kind,
        "benchmark": record.benchmark.name,
        "profile": record.prompt.profile,
        "setting": record.prompt.setting,
        "variables": record.prompt.variables,
    }


def _order(run: Run) -> tuple[str, str, float]:
    # Settings of the persona judge ask different questions, so their accuracies are no ranking.
    value = run.headline.value
    return run.record.benchmark.name, run.record.prompt.setting or "", -1.0 if value is None else -value


def places_of(run: Run) -> Iterator[Place]:
    """A run in detail: the overall number, then its parts, one below the other.

    Of 23 languages, four sections each are more than a page, so of these only the means over languages are shown; the
    long frame has them.
    """
    benchmark = run.record.benchmark.description
    yield Place(OVERALL, run.headline, _counts(run, "pooled"))
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


def shown(run: Run) -> pl.DataFrame:
    """A run in detail as people read it: texts, in per cent with intervals; columns that say nothing are left out."""
    frame = pl.DataFrame([_cells(place) for place in places_of(run)], infer_schema_length=None)
    return frame.drop(name for name in frame.columns[1:] if set(frame[name]) <= {"", "0"} and name != "n")


def _cells(place: Place) -> dict[str, str]:
    return {
        "config": place.place,
        "accuracy": _percent(place.accuracy) or DASH,
        "exact match": _percent(place.exact_match),
        "against English": _percent(place.drop, "+.1f"),
        "kappa": "" if place.kappa.value is None else f"{place.kappa.value:.2f}",
        **{name: f"{place.counts[name]:,}" if name in place.counts else "" for name in COUNTS},
    }


def _percent(found: Estimate, form: str = ".1f") -> str:
    return with_interval(found, 100, form) + mark(found)


def _notes(runs: Sequence[Run]) -> list[str]:
    shares = (
        number for run in runs for place in places_of(run) for number in place[1:] if isinstance(number, Estimate)
    )
    return [*notes(runs), *mark_notes(shares)]


def _heading(run: Run) -> str:
    return f"{Path(run.name).name}, {run.record.benchmark.title} ({run.path})"


def _page(run: Run) -> Page:
    frame = shown(run)
    lines = (Line(str(name), tuple(cells)) for name, *cells in frame.iter_rows())
    return Page(_heading(run), "config", tuple(Heading(name) for name in frame.columns[1:]), tuple(lines))
