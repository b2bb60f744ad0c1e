"""One side of a correlation: models with their scores, from a table or from runs.

From per-item results it has these scores for items drawn anew, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array, resample

from pluralbench.data.verdict_tables import raise_for_row, read_single_table, texts
from pluralbench.downstream.curves import outcomes_at, policy_levels
from pluralbench.downstream.records import read_outcome_table
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.compare import counted_decisions, shared_benchmark
from pluralbench.metrics.accuracy import count, leaves_of, resampled_accuracies
from pluralbench.results.downstream import DownstreamRunConfig
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.runs import RUN_FILE, Downstream, Run, load_run, policy_number

MODEL = "model"
NAMED = 5  # models in a sentence
IDENTITY = ["config", "id", "chosen", "rejected", "digest", "cluster", "subset"]


@dataclass(frozen=True)
class ScoreSeries:
    """Models and their scores, higher being better.

    source: where they are from. measure: what the scores are. names: of the models, each once. scores: [models].
    resampled: the scores as they are on the items that all models share (row 0), and for these items drawn anew, the
    same ones for all models: [1 + resamples, models]; None where there are no per-item results.
    warnings: what a reader has to know, a sentence each.
    """

    source: str
    measure: str
    names: Sequence[str]
    scores: Array
    resampled: Array | None = None
    warnings: Sequence[str] = field(default=())

    def of(self, names: Sequence[str]) -> "ScoreSeries":
        """The same side with these models only, in this order."""
        known = {name: place for place, name in enumerate(self.names)}
        places = [known[name] for name in names]
        resampled = None if self.resampled is None else self.resampled[:, places]
        return ScoreSeries(self.source, self.measure, list(names), self.scores[places], resampled, self.warnings)


def downstream_series(found: Downstream, *, seed: int = 0) -> ScoreSeries:
    """What best-of-n made of each reward model: the outcome at the largest k. Raises `RunError` where nobody judged."""
    last, names = found.result.sampling.sizes[-1], list(found.result.rewards)
    if found.result.outcome is None:
        raise RunError(f"{found.path} has no outcome, since nobody judged it; make it again with a judge.")
    values = {name: policy_number(found, "outcome", model=name, k=last).value for name in names}
    for name, value in values.items():
        if value is None:
            raise RunError(f"{found.path} has no outcome for the reward model {name}.")
    drawn = outcomes_at(read_outcome_table(found), names, last, by_config=_by_config(found), seed=seed)
    measure = f"outcome of best of {last}, judged by {found.result.outcome.judge.name}"
    return ScoreSeries(
        str(found.path), measure, names, np.array(list(values.values()), dtype=np.float64), _whole(drawn)
    )


def optimized_series(several: Sequence[Downstream], source: str, *, seed: int = 0) -> ScoreSeries:
    """What became of a policy under each reward model: the outcome of the optimised one.

    Raises `RunError` where two are of one reward model, where nobody judged, and where they were judged otherwise.
    """
    names: list[str] = []
    judged: list[dict[str, str]] = []
    for found in several:
        [name] = found.result.rewards
        if name in names:
            other = several[names.index(name)].path
            raise RunError(f"{other} and {found.path} are both of the reward model {name}; keep one of them.")
        outcome = found.result.outcome
        if outcome is None or policy_number(found, "outcome").value is None:
            raise RunError(f"{found.path} has no outcome, since nobody judged it; make it again with a judge.")
        names.append(name)
        judged.append({"benchmark": found.config.benchmark.title, "judge": outcome.judge.name})
        judged[-1]["measure"] = found.config.outcome.measure
    for found, own in zip(several, judged, strict=True):
        for key, ours in judged[0].items():
            if ours != own[key]:
                raise RunError(
                    f"{several[0].path} and {found.path} cannot be compared: their {key} is {ours} and {own[key]}; "
                    "make one of them again."
                )
    scores = np.array([policy_number(found, "outcome").value for found in several], dtype=np.float64)
    tables = [read_outcome_table(found) for found in several]
    prompts = [set(found.frame("candidates").select("config", "id").iter_rows()) for found in several]
    shared = all(own == prompts[0] for own in prompts)
    drawn = policy_levels(tables, by_config=_by_config(several[0]), seed=seed) if shared else None
    measure = f"outcome of the optimised policy, judged by {judged[0]['judge']}"
    warnings = () if shared else (f"{source}: the policies answered other prompts, so the noise of these is unknown.",)
    return ScoreSeries(source, measure, names, scores, None if drawn is None else _whole(drawn), warnings)


def _by_config(found: Downstream) -> bool:
    return found.config.benchmark.description.overall != "items"


def _whole(drawn: Array) -> Array | None:
    """The resamples in which every model has a score; None where there are too few of them."""
    whole = drawn[np.isfinite(drawn).all(1)]
    return whole if len(whole) > 1 else None


def read_series(
    location: str | Path, columns: Sequence[str] = (), *, seed: int = 0, parameter: str = "columns"
) -> ScoreSeries:
    """The models and scores of a table, of a run, or of a folder (or a shell's pattern) of runs; or of `best-of-n`, or
    of one or several of `optimize`.

    columns: of a table, those whose unweighted mean is the score; without them the only numeric one. seed: of the items
    that are drawn anew. parameter: what the caller calls `columns`, for errors.

    Raises `DataError` for a table without models or scores, with a model twice, or with a score that is no finite
    number; `RunError` for runs of different benchmarks, of one model twice, or without an overall number.
    """
    paths = _run_directories(location)
    if not paths:
        return _of_table(read_single_table(str(location), "scores"), str(location), columns, parameter)
    if columns:
        raise DataError(f"{location} holds runs, whose score is their overall number; leave out `{parameter}`.")
    read: list[Run[Any, Any]] = [load_run(path) for path in paths]
    runs: list[Run] = [run for run in read if isinstance(run.config, EvaluationRunConfig)]
    downstream: list[Downstream] = [run for run in read if isinstance(run.config, DownstreamRunConfig)]
    if downstream and runs:
        raise DataError(f"{location} holds both runs and directories of best-of-n or optimize; give them apart.")
    verbs = {found.verb for found in downstream}
    if len(verbs) > 1:
        raise DataError(f"{location} holds directories of best-of-n and of optimize; give them apart.")
    if verbs == {"optimize"}:
        return optimized_series(downstream, str(location), seed=seed)
    if len(downstream) > 1:
        raise DataError(f"{location} holds several directories of best-of-n; give one of them.")
    if downstream:
        return downstream_series(downstream[0], seed=seed)
    return runs_series(runs or [load_run(path, EvaluationRunConfig) for path in paths], str(location), seed=seed)


def _run_directories(location: str | Path) -> list[Path]:
    """The run directories of a place; none where it is a table."""
    path = Path(location)
    if path.is_file():
        return []
    if path.is_dir():
        runs = [path] if _is_made(path) else sorted(one for one in path.iterdir() if _is_made(one))
    else:
        matched = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if len(matched) == 1 and matched[0].is_file():
            return []
        # A pattern such as `runs/*` has the working directories of unfinished runs among its paths.
        runs = [one for one in matched if _is_made(one)]
    if not runs:
        wanted = f"give a table, or a folder whose directories are runs (each with a {RUN_FILE})"
        said = "has no run in it" if path.is_dir() else "does not exist"
        raise DataError(f"{location} {said}; {wanted}.")
    return runs


def _is_made(path: Path) -> bool:
    return (path / RUN_FILE).is_file()


def runs_series(runs: Sequence[Run], source: str, *, names: Sequence[str] | None = None, seed: int = 0) -> ScoreSeries:
    """The overall numbers of some runs of one benchmark, and the same for items drawn anew.

    names: of their models; without them those that the runs have. Raises `RunError`.
    """
    for run in runs[1:]:
        shared_benchmark(runs[0], run)
    by_name: dict[str, Run] = {}
    for run, name in zip(runs, names or [run.name.strip() for run in runs], strict=True):
        if name in by_name:
            raise RunError(f"{by_name[name].path} and {run.path} are both of the model {name}; keep one of them.")
        if run.headline.value is None:
            raise RunError(f"{run.path} has no overall number, so its model {name} has no score.")
        by_name[name] = run
    scores = np.array([run.headline.value for run in runs], dtype=np.float64)
    resampled, warnings = _resampled(runs, source, seed)
    measure = f"{runs[0].config.benchmark.title}: {runs[0].config.benchmark.rule}"
    return ScoreSeries(source, measure, list(by_name), scores, resampled, warnings)


def _resampled(runs: Sequence[Run], source: str, seed: int) -> tuple[Array | None, list[str]]:
    """The overall numbers on the decisions that all runs have, as they are and with clusters drawn anew together."""
    every = [counted_decisions(run) for run in runs]
    shared = reduce(lambda one, other: one.join(other, on=IDENTITY, how="semi", nulls_equal=True), every)
    left_out = sum(one.height - shared.height for one in every)
    if shared["cluster"].n_unique() < 2:
        return None, [f"{source}: the runs share no items, so the noise of the items is not in the intervals."]
    benchmark, leaves = runs[0].config.benchmark.description, leaves_of(shared)
    columns = []
    for one in every:
        own = shared.select(IDENTITY).join(one, on=IDENTITY, how="left", nulls_equal=True, maintain_order="left")
        found = {name: resample(sums, seed) for name, sums in count(benchmark, own, leaves).items()}
        columns.append(resampled_accuracies(benchmark, leaves, found)[0].values)
    values = np.stack(columns, axis=1)
    whole = values[np.isfinite(values).all(1)]
    if np.isnan(values[0]).any() or len(whole) < 2:
        return None, [f"{source}: too few items are shared by all runs to draw them anew, so their noise is unknown."]
    warnings = [f"{source}: {left_out:,} decisions are not in all runs; the noise of the items is of the others."]
    return whole, warnings if left_out else []


def _of_table(frame: pl.DataFrame, where: str, columns: Sequence[str], parameter: str) -> ScoreSeries:
    stripped = [name.strip() for name in frame.columns]
    if len(set(stripped)) < len(stripped):
        raise DataError(f"{where} has two columns of one name; it has {', '.join(stripped)}.")
    frame.columns = stripped
    wanted = list(dict.fromkeys(columns))
    table = texts(frame, [MODEL, *wanted], [name for name, kind in frame.schema.items() if not kind.is_nested()], where)
    raise_for_row(table, pl.col(MODEL).is_null(), f"has no `{MODEL}`; give one, or take the row out", where)
    twice = table.group_by(MODEL, maintain_order=True).len().filter(pl.col("len") > 1)
    if twice.height:
        raise DataError(f"{where} has the model {twice[MODEL][0]} {twice['len'][0]} times; keep one of them.")
    wanted = wanted or _only_numeric(table, where, parameter)
    for name in wanted:
        value = pl.col(name).cast(pl.Float64, strict=False)
        found = table.with_row_index("number", offset=1).filter(~value.is_finite().fill_null(value=False))
        if found.height:
            row = found.row(0, named=True)
            said = "is empty" if row[name] is None else f"is no finite number: {row[name]}"
            raise DataError(f"{where}: row {row['number']} ({row[MODEL]}): the score in the column `{name}` {said}.")
    scores = table.select(pl.col(wanted).cast(pl.Float64)).to_numpy().mean(1)
    measure = wanted[0] if len(wanted) == 1 else f"mean of {', '.join(wanted)}"
    return ScoreSeries(where, measure, table[MODEL].to_list(), scores)


def _only_numeric(table: pl.DataFrame, where: str, parameter: str) -> list[str]:
    """The one column with numbers. Raises `DataError` where there is none, or a choice."""
    # A column where some cell is a number is one of scores with faults, which are told one by one.
    numeric = [
        name for name in table.columns if name != MODEL and table[name].cast(pl.Float64, strict=False).count() > 0
    ]
    if len(numeric) == 1:
        return numeric
    if numeric:
        raise DataError(
            f"{where} has several columns of numbers ({', '.join(numeric)}); name the one to take, or those whose mean "
            f"to take, as `{parameter}`."
        )
    raise DataError(f"{where} has no column of numbers beside `{MODEL}`; it has {', '.join(table.columns)}.")


def first_few(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
