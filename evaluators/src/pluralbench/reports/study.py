"""The scores and sentences of a study."""

from collections.abc import Iterator
from typing import Any

import polars as pl
from pluralbench_local.config import TRAINING_FILE
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural
from pluralbench_tables import read_json

from pluralbench.downstream.study import MODELS, Study
from pluralbench.errors import RunError
from pluralbench.reports.correlation import correlation_findings
from pluralbench.reports.downstream import of_rewards
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.results.numbers import three_digits

TITLES = {"best-of-n": "Best-of-N", "optimization": "Policy optimization", "optimize": "Policy optimization"}


def scores_of(study: Study) -> pl.DataFrame:
    """Make a frame with a row for each reward model: its score on each benchmark, and the outcomes."""
    names = [*study.runs, *(["best-of-n"] if study.best_of_n else []), *(["optimization"] if study.optimized else [])]
    rows = [
        {"model": model.name} | dict(zip(names, (score.value for score in _scores(study, model.name)), strict=True))
        for model in study.recipe.models
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def scores_table(study: Study) -> Table:
    """Make a table with a row for each reward model and a column for each benchmark and downstream result."""
    columns = [Column(name, part=True) for name in study.runs]
    if study.best_of_n is not None:
        columns.append(Column(f"best of {study.best_of_n.result.sampling.sizes[-1]}", three_digits, part=True))
    columns += [Column("optimized policy", three_digits, part=True)] if study.optimized else []
    rows = [Row(model.name, _scores(study, model.name)) for model in study.recipe.models]
    return Table("Scores of the reward models, in percent, and downstream results", "reward model", columns, rows)


def _scores(study: Study, name: str) -> list[Estimate]:
    """The scores of a reward model on each benchmark and downstream."""
    scores = [runs[name].headline for runs in study.runs.values()]
    scores += [of_rewards(study.best_of_n, "outcome")[name]] if study.best_of_n is not None else []
    return scores + ([study.optimized[name].estimate("outcome")] if study.optimized else [])


def findings(study: Study) -> Iterator[str]:
    """State the results, a sentence for each downstream result and baseline."""
    for name, correlation in study.correlations.items():
        yield from (f"{TITLES[name]}: {finding}" for finding in correlation_findings(correlation))


def step_notes(study: Study) -> Iterator[str]:
    """Describe the benchmarks and the training of the models, a sentence each."""
    for name, runs in study.runs.items():
        run = next(iter(runs.values()))
        clusters = run.headline.clusters
        over = f"{run.headline.n:,} decisions" if run.headline.n is not None else "its items"
        among = "" if clusters is None else f" on {clusters:,} prompts or users"
        yield f"{name}: {run.config.benchmark.title}, in percent; {run.config.benchmark.rule}; {over}{among}."
    if study.runs:
        yield "Brackets are 95% intervals over prompts or users."
    for model in study.recipe.models:
        path = study.path / MODELS / model.name / TRAINING_FILE
        if path.exists():
            training: Any = read_json(path, RunError)
            data = training["data"]
            yield f"{model.name}: trained on {plural(data['pairs'], 'pair')} of {plural(data['rankings'], 'item')}."
