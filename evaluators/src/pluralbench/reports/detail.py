"""The detailed report: a table for each run, with a row for every config, section and category.

Benchmarks in many languages also have tables with a row for each model; see `sheets.language_tables`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.benchmarks import Benchmark
from pluralbench.reports.notes import notes
from pluralbench.reports.sheets import BEST_OF_K, RIGHT_OR_WRONG, UNREADABLE, language_tables, levels_of, sheets_of
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.reports.writing import Report
from pluralbench.results.metrics_frame import METRICS
from pluralbench.results.numbers import percent, points, three_digits, two_digits
from pluralbench.results.runs import DECIDED, MISSING, Run

ABOUT = ("run", "model", "kind", "benchmark", "profile", "setting", "variables")
COUNTS = ("n", "pairs", "ties", "invalid", "dropped", "equal", "truncated")
OVERALL, MEAN_OF_CONFIGS, LANGUAGES = "overall", "mean of configs", "languages"


COLUMNS = {
    "accuracy": Column("accuracy"),
    "exact_match": Column("exact match"),
    "drop": Column("against English", points),
    "kappa": Column("kappa", two_digits, bounds=False),
    **{metric: Column(heading) for metric, heading in RIGHT_OR_WRONG.items()},
    **{metric: Column(heading, three_digits if metric == "loss" else percent) for metric, heading in BEST_OF_K.items()},
    **{name: Column(name) for name in COUNTS},
}
"""Columns of the table of a run, by metric or count."""


def details(runs: Sequence[Run]) -> Report:
    """Report every number of the runs; JSON and CSV have the rows of `report_frame`."""
    frame = report_frame(runs)
    sheets = sheets_of(runs)
    tables = [*chain.from_iterable(map(language_tables, sheets))]
    tables += [_table(run, sheet.qualifiers) for sheet in sheets for run in sheet.runs]
    return Report(tables, notes(sheets, detail=True), frame)


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """Concatenate the long frames of runs, the best run of a benchmark first.

    Args:
        runs: Finished runs.

    Returns:
        The columns `run` (directory), `model`, `kind`, `benchmark`, `profile`, `setting` and `variables` (both of the
        persona judge only), then those of `pluralbench.results.metrics_frame`.
    """
    if not runs:
        return pl.DataFrame(schema=dict.fromkeys(ABOUT, pl.String) | dict(METRICS))
    frames = []
    for run in sorted(runs, key=_order):
        about = [pl.lit(value, dtype=pl.String).alias(name) for name, value in about_run(run).items()]
        frames.append(run.metrics.select(*about, pl.all()))
    return pl.concat(frames)


def about_run(run: Run) -> dict[str, str | None]:
    """Return the values that identify a run, by the columns `ABOUT`."""
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
    # Settings of the persona judge ask different questions, so their accuracies cannot be ranked.
    value = run.headline.value
    return run.config.benchmark.name, run.config.judge_setting("setting") or "", -1.0 if value is None else -value


def places_of(run: Run) -> Iterator[tuple[str, dict[str, Estimate], dict[str, int]]]:
    """Yield the rows of a run's table, the overall number first: name, numbers and counts.

    Sections of single languages are left out, since 23 languages have four each; the long frame has them.
    """
    benchmark = run.config.benchmark.description
    changes = {metric: run.estimate(metric, "overall") for metric in ("drop", "kappa", *RIGHT_OR_WRONG)}
    yield OVERALL, {"accuracy": run.headline} | changes, _counts(run, "pooled")
    configs = [*run.names("pooled", "config")]
    if benchmark.by_category and len(configs) > 1:
        yield MEAN_OF_CONFIGS, {metric: run.estimate(metric, "overall") for metric in ("accuracy", "exact_match")}, {}
    if benchmark.reference:
        for section in benchmark.sections:
            means = {metric: run.estimate(metric, "section", section=section) for metric in ("accuracy", "drop")}
            yield f"{LANGUAGES}: {section}", means, {}
    for config in configs:
        own = {metric: run.of(config, metric) for metric in COLUMNS if metric not in COUNTS}
        own |= {metric: run.estimate(metric, "best-of-k", config=config) for metric in BEST_OF_K}
        yield config, own, _counts(run, "pooled", config)
        for category in run.names("category", "subset", config=config):
            place = {"group": "category", "config": config, "subset": category}
            shares = {metric: run.estimate(metric, **place) for metric in ("accuracy", "exact_match")}
            yield f"{config}: {category}", shares, _counts(run, **place)
        for subset in run.names("subset", "subset", config=config) if _shows_subsets(benchmark) else ():
            place = {"group": "subset", "config": config, "subset": subset}
            yield f"{config}: {subset}", {"accuracy": run.estimate("accuracy", **place)}, _counts(run, **place)
        for section in run.names("section", "section", config=config) if not benchmark.reference else ():
            accuracy = run.estimate("accuracy", "section", config=config, section=section)
            yield f"{config}: {section}", {"accuracy": accuracy}, {}
        for k in run.names("best-of-k", "subset", config=config):
            accuracy = run.estimate("accuracy", "best-of-k", config=config, subset=k)
            yield f"{config}: best of {k}", {"accuracy": accuracy}, {}
    yield from _styles(run)


def _shows_subsets(benchmark: Benchmark) -> bool:
    """Whether subsets have rows of their own: not if they are in sections, categories or levels."""
    return not (benchmark.sections or benchmark.by_category or benchmark.reference)


def _styles(run: Run) -> Iterator[tuple[str, dict[str, Estimate], dict[str, int]]]:
    for level in levels_of(run):
        yield level, {"accuracy": run.estimate("accuracy", "level", subset=level)}, {}
        for section in run.names("level", "section"):
            own = run.estimate("accuracy", "level", section=section, subset=level)
            yield f"{level}: {section}", {"accuracy": own}, {}
    for style in run.names("style", "subset"):
        accuracy = run.estimate("accuracy", "style", subset=style)
        if accuracy.value is not None:
            yield f"style {style}", {"accuracy": accuracy}, {}


def _counts(run: Run, group: str, config: str | None = None, subset: str | None = None) -> dict[str, int]:
    """Return the counts of a place; pairs only if the benchmark gives credit by item, since n counts items then."""
    counted = run.estimate("accuracy", group, config=config, subset=subset).n or 0
    counts = {name: run.count(name, group, config=config, subset=subset) for name in (*COUNTS[2:], "wins", "losses")}
    pairs = sum(counts[name] for name in DECIDED) if run.config.benchmark.description.credit else 0
    return {"n": counted, "pairs": pairs} | {name: counts[name] for name in COUNTS[2:]}


def _table(run: Run, qualifiers: Sequence[str]) -> Table:
    """The table of a run, without the columns that are empty or zero in every row."""
    places: list[tuple[str, Mapping[str, Value]]] = [
        (place, {**(numbers if not run.unreadable else {"accuracy": MISSING}), **counts})
        for place, numbers, counts in places_of(run)
    ]
    if run.unreadable:
        places[0] = (OVERALL, {**places[0][1], "accuracy": UNREADABLE})
    names = [name for name in COLUMNS if name == "n" or not {_value(own, name) for _, own in places} <= {"", 0}]
    return Table(
        f"{', '.join([Path(run.name).name, run.config.benchmark.title, *qualifiers, run.size])} ({run.path})",
        "config",
        [COLUMNS[name] for name in names],
        [Row(place, [_value(own, name) for name in names]) for place, own in places],
    )


def _value(own: Mapping[str, Value], name: str) -> Value:
    """A value of a row. Missing numbers are empty, except for accuracy, which is shown as missing."""
    value = own.get(name, "")
    return "" if name != "accuracy" and isinstance(value, Estimate) and value.value is None else value
