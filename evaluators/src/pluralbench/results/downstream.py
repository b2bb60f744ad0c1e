"""What a reward model did to a policy: the directory that `best-of-n` and `optimize` leave, and its record."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Output, Table
from pluralbench_tables import read_parquet
from pydantic import ConfigDict, Field

from pluralbench.errors import RunError
from pluralbench.results.metrics_frame import NUMBERS, MetricsFile, check_metrics, frame_of_rows, metrics_text
from pluralbench.results.record import (
    SCHEMA_VERSION,
    BenchmarkRecord,
    DataRecord,
    PromptRecord,
    ProvenanceRecord,
    ScoringRecord,
    SeededRecord,
)
from pluralbench.results.runs import LEDGER_FILE, METRICS_FILE, SETTINGS_FILE, read_file

DOWNSTREAM_SCHEMA: Literal["urn:pluralbench:downstream:1"] = "urn:pluralbench:downstream:1"
DOWNSTREAM_FILE = "downstream.json"
POLICY_FOLDER = "policy"
"""Where `optimize` leaves the optimised policy, in its directory."""


class SamplingRecord(Table):
    """How candidates were sampled, and what came. turns: the most of a conversation.

    n: candidates of each prompt; of a comparison with another sample, that one too. outcomes: candidates by what came
    of the call; "length" was cut at the most tokens and counts as it is. reasons: why there is no text, and how often.
    system_digest: of what the policy is told where something is said about the person.
    """

    n: int
    sizes: tuple[int, ...]
    turns: int
    temperature: float
    top_p: float | None
    max_tokens: int
    seeded: bool
    seed: int
    system_digest: str
    prompts: int
    outcomes: dict[str, int]
    reasons: dict[str, int] = Field(default_factory=dict)
    without_text: tuple[str, ...] = ()
    completion_tokens: int


class RewardedRecord(Table):
    """A reward model and how it scored the candidates.

    missing: candidates with a text and without a reward, which it never selects. alike: prompts whose candidates all
    have the same reward, so that its best is the first one.
    """

    model: ModelRecord
    scoring: ScoringRecord
    missing: int
    alike: int


class OutcomeRecord(Table):
    """What was judged, and how. scale: what a value means. judged: candidates; invalid: those without a value."""

    judge: ModelRecord
    measure: str
    scale: str
    judged: int
    invalid: int
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    attempts: int
    prompts_digest: str | None = None
    calls: int
    prompt_tokens: int
    completion_tokens: int


class DownstreamRecord(SeededRecord):
    """All that `best-of-n` or `optimize` says of itself beside its numbers and frames.

    rewards: by the names of the reward models. optimization: what `optimization.json` of `optimize` holds.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:downstream:1"] = Field(DOWNSTREAM_SCHEMA, alias="$schema")
    schema_version: Literal[1] = SCHEMA_VERSION
    verb: Literal["best-of-n", "optimize"]
    policy: ModelRecord
    rewards: dict[str, RewardedRecord]
    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord
    sampling: SamplingRecord
    outcome: OutcomeRecord | None = None
    optimization: dict[str, Any] | None = None
    seed: int
    provenance: ProvenanceRecord


@dataclass(frozen=True)
class Downstream:
    """A finished directory of `best-of-n` or `optimize`. metrics: the long frame of its numbers."""

    path: Path
    metrics: pl.DataFrame
    record: DownstreamRecord

    def estimate(
        self, metric: str, *, model: str | None = None, k: int | str | None = None, config: str | None = None
    ) -> Estimate:
        """A number: of the policy itself, or of a reward model's best of k. All of it None where it is missing."""
        group = "policy" if model is None else "best-of-n"
        rows = self.metrics.filter(
            pl.col("group") == group,
            pl.col("metric") == metric,
            pl.col("section").eq_missing(pl.lit(model)),
            pl.col("subset").eq_missing(pl.lit(None if k is None else str(k))),
            pl.col("config").eq_missing(pl.lit(config)),
        )
        if rows.is_empty():
            return Estimate(None)
        row = rows.row(0, named=True)
        return Estimate(*(row[name] for name in NUMBERS))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of how many candidates the best was taken, ascending."""
        return self.record.sampling.sizes

    def frame(self, name: str) -> pl.DataFrame:
        """`candidates`, `rewards`, `selected` or `outcomes`. Raises `RunError` where it is not there."""
        return read_parquet(self.path / f"{name}.parquet", error=RunError)


def read_downstream(path: str | Path) -> Downstream:
    """Read the directory of `best-of-n` or `optimize`. Raises `RunError` where it is none, or was not finished."""
    path = Path(path)
    if not (path / DOWNSTREAM_FILE).is_file():
        unfinished = path.with_name(path.name + ".work").exists()
        hint = "it is not finished: run its command again to go on" if unfinished else f"it has no {DOWNSTREAM_FILE}"
        raise RunError(f"{path} is no finished directory of best-of-n or optimize: {hint}.")
    record = read_file(path / DOWNSTREAM_FILE, DownstreamRecord)
    metrics = frame_of_rows(read_file(path / METRICS_FILE, MetricsFile).rows)
    return Downstream(path, check_metrics(metrics, str(path / METRICS_FILE)), record)


def write_downstream(
    output: Output, record: DownstreamRecord, metrics: pl.DataFrame, frames: dict[str, pl.DataFrame]
) -> Path:
    """Fill an empty directory with the record, the numbers and the frames; it is put in place by `output.publish`."""
    staged = output.staging()
    for name, frame in frames.items():
        frame.write_parquet(staged / f"{name}.parquet")
    check_metrics(metrics)
    for name, text in ((METRICS_FILE, metrics_text(metrics)), (DOWNSTREAM_FILE, record.model_dump_json(indent=2))):
        (staged / name).write_text(text + "\n", encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    ledger = output.work / LEDGER_FILE
    if ledger.exists():
        ledger.rename(staged / LEDGER_FILE)
    return staged
