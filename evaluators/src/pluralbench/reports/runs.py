"""Reports of benchmark runs: a row for each model, or a table for each run with every number.

Benchmarks in many languages also have tables with a row for each model; see `sheets.language_tables`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural

from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules import rule_of
from pluralbench.metrics.frame import COLUMNS as FRAME
from pluralbench.metrics.frame import number_fields
from pluralbench.metrics.metric import BASELINES, DECIDED, SHOWN_COUNTS
from pluralbench.metrics.table import METRICS
from pluralbench.reports.annotations import annotations_tables, annotations_terms
from pluralbench.reports.notes import list_names, notes
from pluralbench.reports.profile_modes import MODES_TERMS, mode_fields
from pluralbench.reports.sheets import (
    UNREADABLE,
    Sheet,
    definitions_of,
    language_tables,
    levels_of,
    modes_table,
    sheets_of,
    table_of,
)
from pluralbench.reports.tables import Column, Report, Row, Table, Value, without_empty_dimensions
from pluralbench.reports.votes import votes_tables, votes_terms
from pluralbench.results.kinds import VERDICTS_FILE
from pluralbench.results.numbers import KINDS
from pluralbench.results.runs import MISSING, Run

ABOUT = ("run", "model", "kind", "benchmark", "profile", "setting", "variables")
OVERALL, MEAN_OF_CONFIGS, LANGUAGES = "overall", "mean of configs", "languages"
SHOWN = {name: metric for name, metric in METRICS.items() if metric.in_tables}
COLUMNS = {
    **{name: Column(metric.heading, KINDS[metric.unit]) for name, metric in SHOWN.items()},
    **{name: Column(name) for name in ("n", "pairs", *SHOWN_COUNTS)},
}
"""Columns of the table of a run, by metric or count."""


def overview(runs: Sequence[Run], *, wide: bool = False) -> Report:
    """Report runs with a row each, benchmark by benchmark; `wide` shows the interval of every number.

    For programs, each number has its bounds, `n`, `clusters` and `method`. `parts` has the parts of the overall number,
    `sheet` names the table (only rows of one table are on the same items), and `against_none` the difference to the run
    without user context. CSV joins nested names with a dot, as `parts.Safety.low`.
    """
    sheets = sheets_of(runs)
    modes = [modes_table(sheet) for sheet in sheets if sheet.modes]
    rows = [_row(sheet, row) for sheet in sheets for row in sheet.rows]
    if modes:
        gains = mode_fields(one for sheet in sheets for one in sheet.modes)
        rows = [row | {"against_none": gains.get(row["run"])} for row in rows]
    tables, terms = vote_tables(sheets)
    tables = [*(table_of(sheet, wide=wide) for sheet in sheets), *modes, *tables]
    terms = definitions_of(sheets) | (MODES_TERMS if modes else {}) | terms
    return Report(tables, notes(sheets), _flat(rows), rows, definitions=terms)


def vote_tables(sheets: Sequence[Sheet]) -> tuple[list[Table], dict[str, str]]:
    """Return the tables of votes, of replies and of people, and the definitions of their terms."""
    votes = [table for sheet in sheets for table in votes_tables(sheet)]
    people = [table for sheet in sheets for table in annotations_tables(sheet)]
    return [*votes, *people], votes_terms(votes) | annotations_terms(people)


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
    cost, judging, shared = run.result.cost, run.judged, ("benchmark", "setting")  # baselines have these too
    about = {name: value if own or name in shared else None for name, value in about_run(run).items()}
    numbers: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for column, value in zip(sheet.columns, row.values, strict=True):
        numbers[column.part][column.name] = number_fields(value if isinstance(value, Estimate) else MISSING)
    used = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")
    costs = {
        "seconds": None if cost is None else cost.seconds,
        **{name: getattr(judging, name, None) for name in used},
        "dollars": None if cost is None else cost.dollars,
    }
    return {
        "benchmark": about["benchmark"],
        "sheet": sheet.heading,
        "items": sheet.items,
        "items_counted": run.items_counted if own else None,
        "row": row.name,
        "baseline": None if own else next(key for key, name in BASELINES.items() if name == row.name),
        **{name: about[name] for name in ("model", "kind", "run", "profile", "setting", "variables")},
        **numbers[False],
        "parts": numbers[True],
        **{name: run.count(name) if own else None for name in SHOWN_COUNTS},
        "cost": costs if own else None,
    }


def details(runs: Sequence[Run]) -> Report:
    """Report every number of the runs; JSON and CSV have the rows of `report_frame`."""
    frame = report_frame(runs)
    sheets = sheets_of(runs)
    votes, terms = vote_tables(sheets)
    tables = [*chain.from_iterable(map(language_tables, sheets)), *votes]
    tables += [run_table(run, sheet.qualifiers) for sheet in sheets for run in sheet.runs]
    return Report(tables, notes(sheets, detail=True), frame, definitions=definitions_of(sheets) | terms)


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """Concatenate the long frames of runs, the best run of a benchmark first.

    The columns are those of `about_run`, then those of `pluralbench.metrics.frame` that a number has.
    """
    own = [name for name in FRAME if name not in ABOUT]  # no number of these runs is by reward model
    frames = [pl.DataFrame(schema=dict.fromkeys(ABOUT, pl.String) | {name: FRAME[name] for name in own})]
    for run in sorted(runs, key=_order):
        about = [pl.lit(value, dtype=pl.String).alias(name) for name, value in about_run(run).items()]
        frames.append(run.metrics.select(*about, *own))
    return without_empty_dimensions(pl.concat(frames))


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


def rows_of(run: Run) -> Iterator[tuple[str, dict[str, Estimate], dict[str, int]]]:
    """Yield the rows of a run's table, the overall number first: name, numbers and counts.

    Sections of single languages are left out, since 23 languages have four each; the long frame has them.
    """
    benchmark = run.config.benchmark.description
    rule = rule_of(benchmark)
    own = {name: run.estimate(name) for name in SHOWN if not SHOWN[name].part_of_overall}
    yield OVERALL, {rule.metric: run.headline} | own, _counts(run, MetricKey("pooled_accuracy"))
    configs = run.names("config", "pooled_accuracy")
    # Subsets have rows unless they are in sections, categories or levels.
    by_subset = not (benchmark.sections or benchmark.reference)
    if rule.pooled and len(configs) > 1:
        yield MEAN_OF_CONFIGS, {name: run.estimate(name) for name in SHOWN if SHOWN[name].part_of_overall}, {}
    for section in benchmark.sections if benchmark.reference else ():
        yield f"{LANGUAGES}: {section}", {name: run.estimate(name, section=section) for name in SHOWN}, {}
    for config in configs:
        numbers = {name: run.estimate(name, config=config) for name in SHOWN}
        yield config, numbers, _counts(run, MetricKey("pooled_accuracy", config))
        for dimension in ("category", "subset") if by_subset else ("category",):
            for key in run.keys("accuracy", dimension, config=config):
                shares = {
                    name: run.at(key._replace(metric=name))
                    for name, metric in SHOWN.items()
                    if f"config {dimension}" in metric.dimensions
                }
                yield f"{config}: {getattr(key, dimension)}", shares, _counts(run, key)
        for section in run.names("section", config=config) if not benchmark.reference else ():
            yield f"{config}: {section}", {"accuracy": run.estimate("accuracy", config=config, section=section)}, {}
        for k in run.names("k", "best_of_k", config=config):
            yield f"{config}: best of {k}", {"accuracy": run.estimate("best_of_k", config=config, k=k)}, {}
    yield from _styles(run)


def _styles(run: Run) -> Iterator[tuple[str, dict[str, Estimate], dict[str, int]]]:
    for level in levels_of(run):
        yield level, {"accuracy": run.estimate("style_accuracy", level=level)}, {}
        for key in run.keys("style_accuracy", "level", level=level):
            if key.section is not None:
                yield f"{level}: {key.section}", {"accuracy": run.at(key)}, {}
    for style in run.names("style", "style_accuracy"):
        accuracy = run.estimate("style_accuracy", style=style)
        if accuracy.value is not None:
            yield f"style {style}", {"accuracy": accuracy}, {}


def _counts(run: Run, accuracy: MetricKey) -> dict[str, int]:
    """Return the counts of a part; pairs only if the benchmark gives credit by item, since n counts items then."""
    counts = {name: int(run.at(accuracy._replace(metric=name)).value or 0) for name in {*DECIDED, *SHOWN_COUNTS}}
    pairs = sum(counts[name] for name in DECIDED) if run.config.benchmark.description.credit else 0
    return {"n": run.at(accuracy).n or 0, "pairs": pairs} | {name: counts[name] for name in SHOWN_COUNTS}


def run_table(run: Run, qualifiers: Sequence[str] = ()) -> Table:
    """Make the table of a run, without the columns that are empty or zero in every row."""
    main = rule_of(run.config.benchmark.description).metric
    places: list[tuple[str, Mapping[str, Value]]] = [
        (place, {**(numbers if not run.unreadable else {main: MISSING}), **counts})
        for place, numbers, counts in rows_of(run)
    ]
    if run.unreadable:
        places[0] = (OVERALL, {**places[0][1], main: UNREADABLE})
    names = [name for name in COLUMNS if name == "n" or not {_value(own, name, main) for _, own in places} <= {"", 0}]
    return Table(
        f"{', '.join([Path(run.name).name, run.config.benchmark.title, *qualifiers, run.size])} ({run.path})",
        "config",
        [COLUMNS[name] for name in names],
        [Row(place, [_value(own, name, main) for name in names]) for place, own in places],
    )


def _value(own: Mapping[str, Value], name: str, main: str) -> Value:
    value = own.get(name, "")
    return "" if name != main and isinstance(value, Estimate) and value.value is None else value


LEFT_OUT_VOTES = {
    "missing": "missing votes",
    "repeated": "further votes of a person on an item",
    "items_without": "items without a vote",
    "same_responses": "responses whose item has the text already",
    "varying": "people's attributes that vary",
}


def run_header(run: Run) -> list[str]:
    """Describe a new run's computation, its data and its files, a line each."""
    lines, data, work = [], run.config.data, run.scored.work if run.scored else None
    if work and work.out_of_memory:
        lines.append(f"{work.out_of_memory:,} batches ran out of memory; the budget ended at {work.token_budget:,}.")
    if data.ignored_columns:
        names = (name if name.strip() else "one without a name" for name in data.ignored_columns)
        lines.append(f"Ignored columns: {', '.join(names)}.")
    left_out = {text: getattr(data.annotations, name, 0) for name, text in LEFT_OUT_VOTES.items()}
    if any(left_out.values()):
        texts = ", ".join(f"{text} ({count:,})" for text, count in left_out.items() if count)
        lines.append(f"Left out of the votes of people: {texts}.")
    action = "dropped" if data.on_empty == "drop" else "kept"
    counts = {
        f"items with an empty prompt or response were {action}": data.empty,
        "items have a prompt or response such as nan or None, which may be a missing value": data.missing,
        "prompts contain the full text of the better response": data.answered,
    }
    lines += [f"{len(ids):,} {what} (ids {list_names(ids)})." for what, ids in counts.items() if ids]
    if data.shard is not None:
        items, total = run.items.select("config", "id").n_unique(), data.shard.partition("/")[2]
        lines.append(
            f"Shard {data.shard} has {plural(items, 'item')} and no metrics; `pluralbench merge` merges all {total} "
            "shards."
        )
    if run.result.shards:
        lines.append(f"Merged from {plural(len(run.result.shards), 'shard')}.")
    verdicts = run.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    frames = [f"{name}.parquet" for name in ("replies", "annotations") if (run.path / f"{name}.parquet").exists()]
    files = ", ".join(["items.parquet", "metrics.json", "run.json", *frames])
    return [*lines, f"{run.path}: {files}{further}"]
