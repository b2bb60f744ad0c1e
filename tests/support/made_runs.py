"""Runs without a model: of decisions, or of a plain function on data, in memory or in a directory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench.config import DataConfig, PersonaJudgeConfig, PromptConfig
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Clusters
from pluralbench.data.column_types import DECISIONS
from pluralbench.data.decisions import decide, score_items
from pluralbench.data.items import load_items
from pluralbench.data.metric_key import DIMENSIONS
from pluralbench.data.prompts import prompts_digest
from pluralbench.data.rules import overall_rule
from pluralbench.evaluation.loading import benchmark_record, run_directory
from pluralbench.metrics import measure
from pluralbench.results.evaluations import (
    EvaluationRunConfig,
    PersonaJudgeResult,
    PersonaJudgeRunConfig,
    ScoreResult,
    ScoreRunConfig,
)
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, provenance
from pluralbench.results.run_files import write_run
from pluralbench.results.runs import Run, load_run
from pluralbench_calls import ChatModel
from pluralbench_rewards import ModelRecord, Scored, ScoringConfig
from pluralbench_runs import digest

Row = dict[str, Any]
Scores = Callable[[str, Sequence[str]], Sequence[float]]


def by_length(_: str, responses: Sequence[str]) -> list[float]:
    """The longer a response, the better."""
    return [float(len(response)) for response in responses]


def decision(number: int, outcome: str = "win", **changes: Any) -> Row:
    """A decision about the item `qNUMBER`, with what every column needs."""
    row: Row = {"config": "c", "id": f"q{number}", "cluster": f"q{number}", "subset": None, "truncated": False}
    row |= {"chosen": "chosen", "rejected": "rejected", "outcome": outcome, "digest": "d"}
    row["margin"] = {"win": 1.0, "loss": -2.0, "tie": 0.0}.get(outcome)
    return row | changes


def config_of(benchmark: Benchmark, name: str, rows: dict[str, int], *, model: str = "m") -> ScoreRunConfig:
    """What a run that a function made was asked."""
    digest_of = digest(benchmark.model_dump(mode="json"))
    return ScoreRunConfig(
        benchmark=BenchmarkRecord(
            name=name, title=benchmark.title, rule=overall_rule(benchmark), description=benchmark
        ),
        data=DataRecord(location="data", digest="d", benchmark_digest=digest_of, rows=rows, clusters=Clusters()),
        prompt=PromptRecord(
            profile="none", profile_size=PromptConfig().profile_size, wordings_digest=prompts_digest("none")
        ),
        model=ModelRecord(name=model, kind="function"),
        scoring=ScoringConfig(),
    )


_provenance = cache(provenance)


def run_of(
    rows: pl.DataFrame | Sequence[Row],
    benchmark: str | Benchmark = "pairs",
    *,
    path: str | Path = "runs/m",
    model: str = "m",
    legacy: bool = False,
) -> Run:
    """A run of these decisions, as `load_run` would give it."""
    name = benchmark if isinstance(benchmark, str) else "pairs"
    described = find_benchmark(benchmark, legacy=legacy) if isinstance(benchmark, str) else benchmark
    decisions = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, schema=DECISIONS)
    counts = dict(decisions.group_by("config").agg(pl.col("id").n_unique()).iter_rows())
    return made(path, config_of(described, name, counts, model=model), decisions, measure(described, decisions))


def made(path: str | Path, config: ScoreRunConfig, items: pl.DataFrame, metrics: pl.DataFrame) -> Run:
    """A run of a function with these items."""
    result = ScoreResult(model=config.model)
    return Run(Path(path), config, result, _provenance(), metrics, {"items": items})


def keep(run: Run, out: Path | None = None) -> Run:
    """The run in a directory, its own without `out`, read back."""
    target = out or run.path
    with run_directory(target, run.config, fresh=True) as output:
        assert output is not None
        write_run(output, run.config, run.result, run.metrics, {"items": run.items})
    return load_run(target, EvaluationRunConfig)


def scored(benchmark: str, data: Path, out: Path, by: Scores = by_length, *, model: str = "m", **options: Any) -> Run:
    """The run of a function from a prompt and its responses to scores, in the directory `out`.

    options: of `DataConfig`.
    """
    described = find_benchmark(benchmark, options.get("columns", ()))
    items = load_items(described, DataConfig(location=str(data), **options))
    described = described.fit_to(items.frame["subset"])
    rows = items.frame.select("prompt", "responses").iter_rows()
    scores = [list(by(prompt[-1]["content"], responses)) for prompt, responses in rows]
    decisions = decide(items.frame, scores)
    frame = score_items(described, items.frame, Scored(scores), decisions)
    counts = dict(items.frame["config"].value_counts().iter_rows())
    config = config_of(described, benchmark, counts, model=model)
    asked = {name: options.get(name) for name in ("split", "limit")}
    of = DataRecord.model_validate(items.source | asked | {"benchmark_digest": config.data.benchmark_digest})
    record = benchmark_record(benchmark, described, items.location, items.revision)
    metrics = measure(described, decisions, items.frame)
    return keep(made(out, config.model_copy(update={"data": of, "benchmark": record}), frame, metrics))


def changed(run: Run, **changes: Any) -> Run:
    """The run with other values in its result, or else in its config: whole parts, or `part__field`."""
    for name, value in changes.items():
        part, _, field = name.partition("__")
        which = "result" if part in type(run.result).model_fields else "config"
        of = getattr(run, which)
        inner = getattr(of, part).model_copy(update={field: value}) if field else value
        run = replace(run, **{which: of.model_copy(update={part: inner})})
    return run


def with_items(run: Run, items: pl.DataFrame) -> Run:
    """The run with other items."""
    return replace(run, frames={"items": items})


def for_persons(run: Run, *, setting: Any = "certainty", variables: Any = "all", **result: Any) -> Run:
    """The run as one of a judge for persons. result: what came of it, where that is not nothing."""
    config = PersonaJudgeRunConfig(
        benchmark=run.config.benchmark,
        data=run.config.data,
        model=ChatModel(provider="p", model=run.name),
        prompts_version="1",
        prompts_digest="d",
        judging=PersonaJudgeConfig(reply_format="brief", setting=setting, variables=variables),
        seed=0,
    )
    counts = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0} | result
    return replace(run, config=config, result=PersonaJudgeResult(model=run.result.model, **counts))


def by(dimension: str | None) -> pl.Expr:
    """The rows of a metrics frame whose finest dimension is this one; None: the run as a whole."""
    names = [name for name in DIMENSIONS if name != "baseline"]
    finer = names if dimension is None else names[names.index(dimension) + 1 :]
    own = pl.lit(value=True) if dimension is None else pl.col(dimension).is_not_null()
    return pl.all_horizontal(own, pl.col("baseline").is_null(), *(pl.col(name).is_null() for name in finer))
