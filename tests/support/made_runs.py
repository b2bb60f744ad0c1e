"""Runs without a model: of decisions, or of a plain function on data, in memory or in a directory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench.data.benchmarks import Benchmark, find_benchmark
from pluralbench.data.clusters import Clusters
from pluralbench.data.items import load_items
from pluralbench.descriptions import Data
from pluralbench.metrics import measure
from pluralbench.metrics.accuracy import rule_of
from pluralbench.results.decisions import DECISIONS, decide, score_items
from pluralbench.results.record import (
    BenchmarkRecord,
    DataRecord,
    PromptRecord,
    RunRecord,
    ScoringRecord,
    provenance,
)
from pluralbench.results.runs import SETTINGS_FILE, Run, read_run, write_run
from pluralbench_rewards import ModelRecord, Scored
from pluralbench_runs import Recipe, output_directory

Row = dict[str, Any]
Scores = Callable[[str, Sequence[str]], Sequence[float]]


class Settings(Recipe):
    """What binds a run that was made by hand: nothing."""


def by_length(_: str, responses: Sequence[str]) -> list[float]:
    """The longer a response, the better."""
    return [float(len(response)) for response in responses]


def decision(number: int, outcome: str = "win", **changes: Any) -> Row:
    """A decision about the item `qNUMBER`, with what every column needs."""
    row: Row = {"config": "c", "id": f"q{number}", "cluster": f"q{number}", "subset": None, "truncated": False}
    row |= {"chosen": "chosen", "rejected": "rejected", "outcome": outcome, "digest": "d"}
    row["margin"] = {"win": 1.0, "loss": -2.0, "tie": 0.0}.get(outcome)
    return row | changes


def record_of(benchmark: Benchmark, name: str, rows: dict[str, int], *, model: str = "m", seed: int = 0) -> RunRecord:
    """The record of a run that a function made."""
    described = BenchmarkRecord(name=name, title=benchmark.title, rule=rule_of(benchmark), description=benchmark)
    return RunRecord(
        verb="score",
        model=ModelRecord(name=model, kind="function"),
        benchmark=described,
        data=DataRecord(location="data", digest="d", rows=rows, clusters=Clusters()),
        prompt=PromptRecord(profile="none"),
        scoring=ScoringRecord(),
        seed=seed,
        provenance=_provenance(),
    )


_provenance = cache(provenance)


def run_of(
    rows: pl.DataFrame | Sequence[Row],
    benchmark: str | Benchmark = "pairs",
    *,
    path: str | Path = "runs/m",
    model: str = "m",
    seed: int = 0,
    legacy: bool = False,
) -> Run:
    """A run of these decisions, as `read_run` would give it."""
    name = benchmark if isinstance(benchmark, str) else "pairs"
    described = find_benchmark(benchmark, legacy=legacy) if isinstance(benchmark, str) else benchmark
    decisions = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, schema=DECISIONS)
    counts = dict(decisions.group_by("config").agg(pl.col("id").n_unique()).iter_rows())
    record = record_of(described, name, counts, model=model, seed=seed)
    return Run(Path(path), decisions, measure(described, decisions), record)


def keep(run: Run, out: Path | None = None) -> Run:
    """The run in a directory, its own without `out`, read back."""
    target = out or run.path
    with output_directory(target, Settings(), recipe_file=SETTINGS_FILE, fresh=True) as output:
        write_run(output, items=run.items, metrics=run.metrics, record=run.record)
    return read_run(target)


def scored(
    benchmark: str, data: Path, out: Path, by: Scores = by_length, *, model: str = "m", seed: int = 0, **options: Any
) -> Run:
    """The run of a function from a prompt and its responses to scores, in the directory `out`.

    options: of `Data`.
    """
    described = find_benchmark(benchmark, options.get("columns", ()))
    items = load_items(described, Data(location=str(data), **options))
    described = described.fitted(items.frame["subset"])
    rows = items.frame.select("prompt", "responses").iter_rows()
    scores = [list(by(prompt[-1]["content"], responses)) for prompt, responses in rows]
    decisions = decide(items.frame, scores)
    frame = score_items(described, items.frame, Scored(scores), decisions)
    counts = dict(items.frame["config"].value_counts().iter_rows())
    record = record_of(described, benchmark, counts, model=model, seed=seed)
    return keep(with_clusters(Run(out, frame, measure(described, decisions), record), items.clusters))


def with_clusters(run: Run, clusters: Clusters | None) -> Run:
    """The run, saying that its clusters are these."""
    data = run.record.data.model_copy(update={"clusters": clusters})
    return replace(run, record=run.record.model_copy(update={"data": data}))
