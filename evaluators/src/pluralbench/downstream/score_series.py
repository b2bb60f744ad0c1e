"""Scores of models on one side of a correlation, from a table or from runs.

Series from per-item results also have the scores on resampled items.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array, resample

from pluralbench.data.rules import rule_of
from pluralbench.data.verdict_tables import raise_for_row, read_single_table, texts
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.shared_decisions import counted_decisions, shared_benchmark
from pluralbench.metrics.accuracy import count, resampled_accuracies
from pluralbench.metrics.best_of_n import OutcomeTable, outcomes_at, policy_levels
from pluralbench.metrics.decided import Decided
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.outcomes import outcome_table
from pluralbench.results.run_files import RUN_FILE
from pluralbench.results.runs import Downstream, Run, load_run

MODEL = "model"
MAX_NAMES = 5  # named in a sentence
IDENTITY = ["config", "id", "chosen", "rejected", "repeat", "digest", "cluster", "subset"]


@dataclass(frozen=True)
class ScoreSeries:
    """Models and their scores; higher is better.

    Attributes:
        source: Where the scores are from.
        measure: What the scores measure.
        names: Distinct names of the models.
        scores: Scores of the models. Shape (models,).
        resampled: Scores on the items that all models share (row 0) and on resamples of these items, the same for all
            models. Shape (1 + resamples, models). None without per-item results.
        warnings: Warnings for the reader, one sentence each.
    """

    source: str
    measure: str
    names: Sequence[str]
    scores: Array
    resampled: Array | None = None
    warnings: Sequence[str] = field(default=())

    def of(self, names: Sequence[str]) -> "ScoreSeries":
        """Return the series of these models, in this order."""
        index = {name: place for place, name in enumerate(self.names)}
        places = [index[name] for name in names]
        resampled = None if self.resampled is None else self.resampled[:, places]
        return ScoreSeries(self.source, self.measure, list(names), self.scores[places], resampled, self.warnings)


def downstream_series(run: Downstream, *, seed: int = 0) -> ScoreSeries:
    """Return the outcome at the largest k of each reward model of a best-of-n run.

    Raises:
        RunError: The run has no outcomes, or none for a reward model.
    """
    last, names = run.result.sampling.sizes[-1], list(run.result.rewards)
    if run.result.outcome is None:
        raise RunError(f"{run.path} has no outcomes, because it ran without a judge; run it again with one.")
    values = {name: run.estimate("outcome", model=name, k=last).value for name in names}
    for name, value in values.items():
        if value is None:
            raise RunError(f"{run.path} has no outcome for the reward model {name}.")
    resampled = outcomes_at(_outcome_table(run), names, last, by_config=_by_config(run), seed=seed)
    measure = f"outcome of best of {last}, judged by {run.result.outcome.judge.name}"
    return ScoreSeries(
        str(run.path), measure, names, np.array(list(values.values()), dtype=np.float64), _complete_rows(resampled)
    )


def optimized_series(runs: Sequence[Downstream], source: str, *, seed: int = 0) -> ScoreSeries:
    """Return the outcome of the policy that was optimized against each reward model. `source` names the series.

    Raises:
        RunError: Two runs have the same reward model, a run has no outcomes, or the runs were judged differently.
    """
    by_name: dict[str, Downstream] = {}
    judged: list[dict[str, str]] = []
    for run in runs:
        [name] = run.result.rewards
        if name in by_name:
            other = by_name[name].path
            raise RunError(f"{other} and {run.path} both have the reward model {name}; remove one of them.")
        outcome = run.result.outcome
        if outcome is None or run.estimate("outcome").value is None:
            raise RunError(f"{run.path} has no outcomes, because it ran without a judge; run it again with one.")
        by_name[name] = run
        judged.append({"benchmark": run.config.benchmark.title, "judge": outcome.judge.name})
        judged[-1]["measure"] = run.config.outcome.measure
        differ = next((key for key, ours in judged[0].items() if ours != judged[-1][key]), None)
        if differ is not None:
            raise RunError(
                f"{runs[0].path} and {run.path} cannot be compared: their {differ} differs ({judged[0][differ]}, "
                f"{judged[-1][differ]}); run one of them again."
            )
    scores = np.array([run.estimate("outcome").value for run in runs], dtype=np.float64)
    tables = [_outcome_table(run) for run in runs]
    prompts = [set(run.frame("candidates").select("config", "id").iter_rows()) for run in runs]
    shared = all(own == prompts[0] for own in prompts)
    resampled = policy_levels(tables, by_config=_by_config(runs[0]), seed=seed) if shared else None
    measure = f"outcome of the optimized policy, judged by {judged[0]['judge']}"
    warnings = (
        () if shared else (f"{source}: the policies answered different prompts, so the noise of the items is unknown.",)
    )
    return ScoreSeries(
        source, measure, list(by_name), scores, None if resampled is None else _complete_rows(resampled), warnings
    )


def _outcome_table(run: Downstream) -> OutcomeTable:
    """Build the outcome table of a run with the items sorted by id, as in other runs."""
    candidates = run.frame("candidates").sort("config", "id", maintain_order=True)
    return outcome_table(run.config, run.result, lambda name: candidates if name == "candidates" else run.frame(name))


def _by_config(run: Downstream) -> bool:
    return rule_of(run.config.benchmark.description).by_config


def _complete_rows(resampled: Array) -> Array | None:
    """Return the rows in which every model has a score; None if fewer than two."""
    complete = resampled[np.isfinite(resampled).all(1)]
    return complete if len(complete) > 1 else None


def read_series(
    location: str | Path, columns: Sequence[str] = (), *, seed: int = 0, parameter: str = "columns"
) -> ScoreSeries:
    """Read models and scores from a table or from runs.

    Args:
        location: A table with a column `model`, a run directory, or a directory or glob pattern of run directories:
            several runs of a benchmark or of `optimize`, or one of `best-of-n`.
        columns: Score columns of a table; their unweighted mean is the score. Default: the only numeric column.
        seed: Seed of the resampled items.
        parameter: Name of the caller's parameter for `columns`, for error messages.

    Raises:
        DataError: The table has no models or no scores, names a model twice, or has a score that is not finite; or the
            runs are of different kinds.
        RunError: The runs are of different benchmarks, two have the same model, or one has no overall number.
    """
    paths = _run_directories(location)
    if not paths:
        return _table_series(read_single_table(str(location), "scores"), str(location), columns, parameter)
    if columns:
        raise DataError(f"{location} holds runs, whose score is their overall number; leave out `{parameter}=...`.")
    read: list[Run[Any, Any]] = [load_run(path) for path in paths]
    runs: list[Run] = [run for run in read if run.kind.has_overall]
    downstream: list[Downstream] = [run for run in read if run.kind.group == "downstream"]
    kinds = [*(["benchmarks"] if runs else []), *dict.fromkeys(run.verb for run in downstream)]
    if len(kinds) > 1:
        raise DataError(f"{location} holds runs of {' and of '.join(kinds)}; give only one kind.")
    if kinds == ["optimize"]:
        return optimized_series(downstream, str(location), seed=seed)
    if len(downstream) > 1:
        raise DataError(f"{location} holds several runs of best-of-n; give one of them.")
    if downstream:
        return downstream_series(downstream[0], seed=seed)
    return runs_series(runs or [load_run(path, EvaluationRunConfig) for path in paths], str(location), seed=seed)


def _run_directories(location: str | Path) -> list[Path]:
    """Return the run directories at a location; none for a table."""
    path = Path(location)
    if os.path.isfile(path):  # noqa: PTH113 - before Python 3.14 `Path.is_file` raises for a long name
        return []
    is_folder = os.path.isdir(path)  # noqa: PTH112 - before Python 3.14 `Path.is_dir` raises for a long name
    if is_folder:
        runs = [path] if _is_run(path) else sorted(folder for folder in path.iterdir() if _is_run(folder))
    else:
        try:
            matched = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        except OSError:  # a name that is too long
            matched = []
        if len(matched) == 1 and matched[0].is_file():
            return []
        # A pattern such as `runs/*` also matches the working directories of unfinished runs.
        runs = [folder for folder in matched if _is_run(folder)]
    if not runs:
        problem = "contains no run" if is_folder else "does not exist"
        raise DataError(f"{location} {problem}; give a table, or a directory of runs (each with a {RUN_FILE}).")
    return runs


def _is_run(path: Path) -> bool:
    return (path / RUN_FILE).is_file()


def runs_series(runs: Sequence[Run], source: str, *, names: Sequence[str] | None = None, seed: int = 0) -> ScoreSeries:
    """Return the overall numbers of runs of one benchmark, as measured and on resampled items.

    `source` names the series, and `names` the models, by default as the runs record them.

    Raises:
        RunError: The runs are of different benchmarks, two have the same model, or one has no overall number.
    """
    for run in runs[1:]:
        shared_benchmark(runs[0], run)
    by_name: dict[str, Run] = {}
    for run, name in zip(runs, names or [run.name.strip() for run in runs], strict=True):
        if name in by_name:
            raise RunError(f"{by_name[name].path} and {run.path} both have the model {name}; remove one of them.")
        if run.headline.value is None:
            raise RunError(f"{run.path} has no overall number, so its model {name} has no score.")
        by_name[name] = run
    scores = np.array([run.headline.value for run in runs], dtype=np.float64)
    resampled, warnings = _resample_runs(runs, source, seed)
    measure = f"{runs[0].config.benchmark.title}: {runs[0].config.benchmark.rule}"
    return ScoreSeries(source, measure, list(by_name), scores, resampled, warnings)


def _resample_runs(runs: Sequence[Run], source: str, seed: int) -> tuple[Array | None, list[str]]:
    """Resample the overall numbers jointly, by cluster, on the decisions that all runs share; with warnings."""
    all_decisions = [counted_decisions(run) for run in runs]
    shared = reduce(lambda one, other: one.join(other, on=IDENTITY, how="semi", nulls_equal=True), all_decisions)
    left_out = sum(decisions.height - shared.height for decisions in all_decisions)
    if shared["cluster"].n_unique() < 2:
        return None, [f"{source}: the runs share no items, so the intervals do not include the noise of the items."]
    benchmark = runs[0].config.benchmark.description
    cells = sorted(Decided(benchmark, shared).cells, key=str)
    identity = shared.select(IDENTITY)
    decided = (
        Decided(benchmark, identity.join(own, on=IDENTITY, how="left", nulls_equal=True, maintain_order="left"))
        for own in all_decisions
    )
    counts = [count(own, cells) for own in decided]
    drawn = iter(resample([sums for tables in counts for sums in tables.values()], seed))
    sides = [{name: next(drawn) for name in tables} for tables in counts]
    values = np.stack([resampled_accuracies(benchmark, cells, side)[0].values for side in sides], axis=1)
    complete = _complete_rows(values)
    if np.isnan(values[0]).any() or complete is None:
        return None, [f"{source}: the runs share too few items to resample them, so the noise of the items is unknown."]
    warnings = [f"{source}: {left_out:,} decisions are not in all runs; the noise of the items excludes them."]
    return complete, warnings if left_out else []


def _table_series(frame: pl.DataFrame, where: str, columns: Sequence[str], parameter: str) -> ScoreSeries:
    stripped = [name.strip() for name in frame.columns]
    if len(set(stripped)) < len(stripped):
        raise DataError(f"{where} has two columns with the same name; its columns are {', '.join(stripped)}.")
    frame.columns = stripped
    score_columns = list(dict.fromkeys(columns))
    table = texts(
        frame, [MODEL, *score_columns], [name for name, kind in frame.schema.items() if not kind.is_nested()], where
    )
    raise_for_row(table, pl.col(MODEL).is_null(), f"has no `{MODEL}`; add one, or remove the row", where)
    repeated = table.group_by(MODEL, maintain_order=True).len().filter(pl.col("len") > 1)
    if repeated.height:
        raise DataError(f"{where} has the model {repeated[MODEL][0]} {repeated['len'][0]} times; keep one of them.")
    score_columns = score_columns or _only_numeric(table, where, parameter)
    for name in score_columns:
        value = pl.col(name).cast(pl.Float64, strict=False)
        invalid = table.with_row_index("number", offset=1).filter(~value.is_finite().fill_null(value=False))
        if invalid.height:
            row = invalid.row(0, named=True)
            problem = "is empty" if row[name] is None else f"is not a finite number: {row[name]}"
            raise DataError(f"{where}: row {row['number']} ({row[MODEL]}): the score in the column `{name}` {problem}.")
    scores = table.select(pl.col(score_columns).cast(pl.Float64)).to_numpy().mean(1)
    measure = score_columns[0] if len(score_columns) == 1 else f"mean of {', '.join(score_columns)}"
    return ScoreSeries(where, measure, table[MODEL].to_list(), scores)


def _only_numeric(table: pl.DataFrame, where: str, parameter: str) -> list[str]:
    # A column with at least one number counts as numeric; its other cells are reported one by one.
    numeric = [
        name for name in table.columns if name != MODEL and table[name].cast(pl.Float64, strict=False).count() > 0
    ]
    if len(numeric) == 1:
        return numeric
    if numeric:
        raise DataError(
            f"{where} has several numeric columns ({', '.join(numeric)}); name the score column, or several to "
            f"average, with `{parameter}=...`."
        )
    raise DataError(f"{where} has no numeric column besides `{MODEL}`; its columns are {', '.join(table.columns)}.")


def first_few(names: Sequence[str]) -> str:
    """Join the first few names, and count the others."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
