"""The directory that `plan` leaves: the plans, what each of them has of the true aspects, and how they were made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Output, Table
from pluralbench_tables import read_parquet
from pydantic import ConfigDict, Field

from pluralbench.descriptions import AspectMatching, Planning
from pluralbench.errors import RunError
from pluralbench.results.metrics_frame import NUMBERS, MetricsFile, check_metrics, frame_of_rows, metrics_text
from pluralbench.results.record import SCHEMA_VERSION, BenchmarkRecord, CostRecord, DataRecord, ProvenanceRecord
from pluralbench.results.runs import LEDGER_FILE, METRICS_FILE, SETTINGS_FILE, finished, read_file

PLANS_FILE, RECORD_FILE, ITEMS_FILE = "plans.jsonl", "plan.json", "plans.parquet"


PLANS_SCHEMA: Literal["urn:pluralbench:plans:1"] = "urn:pluralbench:plans:1"


class PlansRecord(Table):
    """All that `plan` says of itself beside its plans and numbers.

    posts: of a profile, at most. prompts_digest: of what the planner is told. items: how many there are; listed: plans
    with a list of aspects; as_text: plans without one, which are told as they were written; missing: items whose call
    gave no text, which have no plan. cut: plans that ended at the most tokens. reasons: why plans are missing.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:plans:1"] = Field(PLANS_SCHEMA, alias="$schema")
    schema_version: Literal[1] = SCHEMA_VERSION
    verb: Literal["plan"] = "plan"
    planner: ModelRecord
    benchmark: BenchmarkRecord
    data: DataRecord
    posts: int
    sampling: Planning
    matching: AspectMatching
    prompts_digest: str
    seed: int
    items: int
    listed: int
    as_text: int
    missing: int
    cut: int
    reasons: dict[str, int] = Field(default_factory=dict)
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: CostRecord
    provenance: ProvenanceRecord


@dataclass(frozen=True)
class Plans:
    """Finished plans. path: their directory. metrics: the long frame of `pluralbench.results.metrics_frame`."""

    path: Path
    metrics: pl.DataFrame
    record: PlansRecord

    @property
    def file(self) -> Path:
        """What `score --profile plan --plans` takes."""
        return self.path / PLANS_FILE

    @property
    def items(self) -> pl.DataFrame:
        """A row an item: its plan as it was written, the aspects read from it, and what it has of the true ones."""
        return read_parquet(self.path / ITEMS_FILE, error=RunError)

    def estimate(self, metric: str, way: str, config: str | None = None) -> Estimate:
        """`aspect_recall` or `aspect_precision` by "words" or "embeddings"; all of it None where it is missing."""
        rows = self.metrics.filter(
            pl.col("metric") == metric, pl.col("section") == way, pl.col("config").eq_missing(pl.lit(config))
        )
        return Estimate(*rows.select(NUMBERS).row(0)) if rows.height else Estimate(None)


def read_plans_folder(path: str | Path) -> Plans:
    """Read a directory of plans. Raises `RunError` where it is none, or was not finished."""
    path = finished(path, RECORD_FILE, "directory of plans")
    metrics = frame_of_rows(read_file(path / METRICS_FILE, MetricsFile).rows)
    return Plans(path, check_metrics(metrics, str(path / METRICS_FILE)), read_file(path / RECORD_FILE, PlansRecord))


def write_plans(output: Output, record: PlansRecord, metrics: pl.DataFrame, items: pl.DataFrame, lines: str) -> None:
    """Put the directory in place. lines: the text of the file of plans."""
    staged = output.staging()
    items.write_parquet(staged / ITEMS_FILE)
    check_metrics(metrics)
    for name, text in ((METRICS_FILE, metrics_text(metrics)), (RECORD_FILE, record.model_dump_json(indent=2))):
        (staged / name).write_text(text + "\n", encoding="utf-8")
    (staged / PLANS_FILE).write_text(lines, encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    (output.work / LEDGER_FILE).rename(staged / LEDGER_FILE)
    output.publish(staged)
