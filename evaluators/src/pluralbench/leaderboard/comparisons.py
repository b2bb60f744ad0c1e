"""Comparisons of a run's files with what its items, its data and its recorded calls give."""

from collections.abc import Collection, Iterator
from typing import Any, get_args

import polars as pl
from pluralbench_policies.language_models import OWN_FIELDS, Library
from pluralbench_runs import FrozenModel, plural

from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.reloading import OtherPrompts, RunData, check_prompts
from pluralbench.evaluation.soft_verdicts import request_fields
from pluralbench.leaderboard.reproduction import Reproduced
from pluralbench.metrics.frame import KEY, key_text
from pluralbench.metrics.table import METRICS
from pluralbench.results.checks import Finding
from pluralbench.results.downstream import DownstreamResult
from pluralbench.results.evaluations import JudgeRunConfig, PersonaJudgeRunConfig, ScoreRunConfig
from pluralbench.results.item_rows import item_columns
from pluralbench.results.run_files import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE
from pluralbench.results.runs import Run, ungrouped_votes

Findings = Iterator[Finding]
SAME = 1e-9
"""Absolute and relative tolerance between two computations of a number."""

OF_THE_PLACE = {"title", "location", "revision", "license", "reference", "ignored_columns"}
"""Fields of the records of benchmark and data that a copy of the data elsewhere need not share."""

SAMPLING = ("temperature", "top_p", "max_tokens")
"""Settings of a judge that are also those of its requests."""

NOT_RULES = {"columns", "required", "sample", "sections", "strata", "train_split"}
"""Fields of a benchmark's description that change no number, follow from the items, or are compared separately."""


def compare_columns(run: Run) -> Findings:
    """Compare the columns of the items with those of the run's command."""
    differ = item_columns(run.config, run.items).keys() ^ {*run.items.columns}
    if differ:
        yield Finding("error", f"{ITEMS_FILE} lacks or adds the columns {', '.join(sorted(differ))} (`{run.verb}`).")


def compare_metrics(run: Run[Any, Any], again: pl.DataFrame, source: str, *, without_texts: bool = False) -> Findings:
    """Compare all numbers and intervals with recomputed ones.

    Args:
        run: The run.
        again: Recomputed metrics.
        source: Source of the recomputed metrics.
        without_texts: Leave out the metrics of texts.
    """
    of_texts = pl.col("baseline").is_not_null() | pl.col("metric").is_in(
        [name for name, metric in METRICS.items() if metric.of_texts]
    )
    recorded = run.metrics.filter(~of_texts) if without_texts else run.metrics
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


def compare_records(run: Run, data: RunData, *, moved: bool) -> Findings:
    """Compare the records of benchmark and data with those that the data gives, and the model that was asked.

    Args:
        run: The run.
        data: Its data.
        moved: The data was read from another location than the run's.
    """
    config, record, again = run.config, run.config.data, data.config
    left_out = OF_THE_PLACE if moved else ()
    yield from _differing("benchmark", config.benchmark, again.benchmark, data.place, left_out)
    yield from _differing("data", record, again.data, data.place, left_out)
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(config, ScoreRunConfig):
        pairs = [("name", config.model.name, run.result.model.name)]
    elif isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig):
        for model in config.judges.values() if isinstance(config, JudgeRunConfig) else [config.model]:
            pairs += [(name, getattr(config.judging, name), getattr(model, name)) for name in SAMPLING]
            own = OWN_FIELDS if model.provider in get_args(Library) else ()
            extra = {name: value for name, value in model.extra.items() if name not in own}
            pairs.append(("extra", request_fields(config.judging), extra))
    for name, one, other in pairs:
        if one != other:
            yield Finding("error", f"{RUN_FILE} records two values of the model's {name}: {one} and {other}.")
    if moved and record.revision is not None:
        recorded = f"{record.location} at revision {record.revision[:12]}"
        yield Finding("note", f"It was checked against {data.place}; that its data is {recorded} is only recorded.")


def _differing(
    what: str, recorded: FrozenModel, again: FrozenModel, source: str, left_out: Collection[str] = ()
) -> Findings:
    for name in type(again).model_fields:
        if name not in left_out and getattr(recorded, name) != getattr(again, name):
            yield Finding("error", f"{RUN_FILE} records another `{name}` of the {what} than follows from {source}.")


def compare_result(run: Run, again: Reproduced) -> Findings:
    """Compare the result with the one that scores or calls give; each call needs a verdict."""
    source = "its scores" if run.judged is None else "its calls"
    # A call that two shards made was paid twice.
    left_out = {"shards", "cost"} if run.result.shards else {"shards"}
    yield from _differing("result", run.result, again.result, source, left_out)
    if again.unused:
        yield Finding("error", f"{LEDGER_FILE} has {again.unused:,} calls that no verdict needs.")


def compare_rewards(run: Run[Any, DownstreamResult]) -> Findings:
    """Compare the rewards of models that only compare with the mean probabilities of their pairs."""
    models = [name for name, one in run.result.rewards.items() if one.compares]
    if not models:
        return
    pairs = run.frame("comparisons")
    keys = [name for name in pairs.columns if name not in {"other", "probability"}]
    second = pairs.with_columns(sample="other", probability=1 - pl.col("probability"))
    means = pl.concat([pairs, second]).group_by(keys).agg(mean=pl.col("probability").fill_null(float("nan")).mean())
    rewards = run.frame("rewards").filter(pl.col("model").is_in(models)).join(means, on=keys, how="left")
    expected = pl.col("mean").fill_nan(None)
    other = (pl.col("reward") - expected).abs() > SAME
    wrong = rewards.filter(pl.col("mean").is_not_null(), other | (pl.col("reward").is_null() != expected.is_null()))
    if wrong.height:
        yield Finding("error", f"{wrong.height:,} rewards do not follow from the compared pairs of their candidates.")


def compare_user_context(run: Run, data: RunData) -> Findings:
    """Check that the data has the user context of the prompts of `score`; what a model read, only scoring shows."""
    if run.scored is None or run.config.prompt.profile == "none":
        return
    try:
        check_prompts(run.config, data.loaded).groups()
    except OtherPrompts as error:
        yield Finding("note", f"The user context in its prompts was not checked. {error}")
    except DataError as error:
        yield Finding("error", f"Its data does not have what its prompts show. {error}")


def notes_of(run: Run) -> Findings:
    """Yield what no comparison shows: rules of the run's author, votes in no group, and inputs that were too long."""
    benchmark = run.config.benchmark
    registered = known_benchmarks().get(benchmark.name)
    if registered is None:
        yield Finding("note", f"`{benchmark.name}` is not a benchmark of pluralbench; the run's author described it.")
    else:
        subsets = run.items.select("config", "id", "subset").unique()["subset"]
        rules = [name for name in Benchmark.model_fields if name not in NOT_RULES]
        other = [name for name in rules if getattr(registered, name) != getattr(benchmark.description, name)]
        if benchmark.description.sections not in ({}, registered.fit_to(subsets).sections):
            other.append("sections")
        if other:
            yield Finding("note", f"Its rules differ from those of `{benchmark.name}`: {', '.join(other)}.")
    if text := ungrouped_votes(run):
        yield Finding("note", f"Votes in no group: {text}.")
    if run.scored is not None and (long := run.scored.items_truncated + run.scored.items_dropped):
        yield Finding(
            "note",
            f"{plural(long, 'item')} truncated or dropped as too long; only scoring again shows whether they are.",
        )
