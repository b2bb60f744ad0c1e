"""Runs changed by somebody who keeps all their files in step: outcomes, metrics, counts and settings."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench.evaluation.judge import with_legacy
from pluralbench.evaluation.personas import compute_persona_metrics
from pluralbench.leaderboard.reproduction import RunInputs, run_data
from pluralbench.metrics import measure
from pluralbench.results.decisions import decisions_of
from pluralbench.results.evaluations import EvaluationRunConfig, PersonaJudgeRunConfig
from pluralbench.results.metrics_frame import metrics_text
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, Run, load_run

Row = dict[str, Any]


def copied(run: Run, out: Path) -> Run:
    """The run in another directory."""
    shutil.copytree(run.path, out)
    return load_run(out, EvaluationRunConfig)


def rewritten(run: Run, items: pl.DataFrame) -> Run:
    """The run with these items, and with the metrics, references and counts that they give."""
    source = run_data(run, RunInputs())
    of = source.items.join(
        items.select("config", "id").unique(), on=["config", "id"], how="semi", maintain_order="left"
    )
    if isinstance(run.config, PersonaJudgeRunConfig):
        metrics = compute_persona_metrics(run.config, items, of)
    else:
        metrics = measure(run.config.benchmark.description, decisions_of(items), of)
        if (run.path / LEDGER_FILE).exists():
            metrics = with_legacy(metrics, items, pl.read_parquet(run.path / LEDGER_FILE))
    items.write_parquet(run.path / ITEMS_FILE)
    (run.path / METRICS_FILE).write_text(metrics_text(metrics), encoding="utf-8")
    counts = dict(items.group_by("config").agg(pl.col("id").n_unique()).iter_rows())
    if run.verb != "judge-personas":
        change_config(run, data={"rows": counts})
    return load_run(run.path, EvaluationRunConfig)


def by_row(run: Run, change: Callable[[Row], Row | None]) -> Run:
    """The run with each of its rows changed, or left out where nothing comes back."""
    rows = [made for row in run.items.iter_rows(named=True) if (made := change(row)) is not None]
    kinds = {name: kind for name, kind in run.items.schema.items() if kind != pl.Null}
    return rewritten(run, pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None))


def change_record(run: Run, **parts: Any) -> Run:
    """The run with other values in what came of it."""
    return _changed(run, "result", parts)


def change_config(run: Run, **parts: Any) -> Run:
    """The run with other values in what it was asked."""
    return _changed(run, "config", parts)


def _changed(run: Run, which: str, parts: Mapping[str, Any]) -> Run:
    values = json.loads((run.path / RUN_FILE).read_text(encoding="utf-8"))
    for name, changes in parts.items():
        own = values[which].get(name)
        values[which][name] = {**(own or {}), **changes} if isinstance(changes, Mapping) else changes
    (run.path / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")
    return load_run(run.path, EvaluationRunConfig)


def named(run: Run, name: str) -> Run:
    """The run under another model's name."""
    change_config(run, model={"name" if run.verb == "score" else "model": name})
    return change_record(run, model={"name": name})


def with_ledger(run: Run, ledger: pl.DataFrame) -> None:
    """Put another ledger in place of the run's."""
    path = run.path / LEDGER_FILE
    ledger.write_parquet(path, metadata=pl.read_parquet_metadata(path))


def with_scores(row: Row, chosen: float, rejected: float) -> Row:
    """The row of a pair with these scores, and what they amount to."""
    outcome = "win" if chosen > rejected else "loss" if chosen < rejected else "tie"
    margin = chosen - rejected
    return row | {"score_chosen": chosen, "score_rejected": rejected, "margin": margin, "outcome": outcome}
