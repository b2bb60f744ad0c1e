"""What personalized reward models decide with and without a profile: the directory that `personalize` leaves."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Output, Table
from pluralbench_tables import read_parquet
from pydantic import ConfigDict, Field

from pluralbench.errors import RunError
from pluralbench.results.metrics_frame import (
    NUMBERS,
    MetricsFile,
    Place,
    check_metrics,
    frame_of_rows,
    metrics_text,
)
from pluralbench.results.record import SCHEMA_VERSION, BenchmarkRecord, CostRecord, DataRecord, ProvenanceRecord
from pluralbench.results.runs import ITEMS_FILE, METRICS_FILE, SETTINGS_FILE, finished, read_file

PERSONALIZE_SCHEMA: Literal["urn:pluralbench:personalize:1"] = "urn:pluralbench:personalize:1"
PERSONALIZE_FILE = "personalize.json"
MODELS_FOLDER, EMBEDDINGS_FOLDER, FIGURES_FOLDER, PAGE_FILE = "models", "embeddings", "figures", "report.md"

Condition = Literal["without", "with", "shuffled"]
Told = Literal["raw", "persona"]
"""What a model knows of the person: nothing, what is told of them, or what is told of somebody else."""

NEW, KNOWN, SCORED = "new", "known", "scored"
SETS = (NEW, KNOWN, SCORED)
"""Users of whom nothing was trained on, later pairs of users that were trained on, and another benchmark."""

PERSONALIZE_ITEMS = pl.Schema(
    {
        "method": pl.String,
        "condition": pl.String,
        "seed": pl.Int64,
        "set": pl.String,
        "config": pl.String,
        "item": pl.String,
        "pair": pl.Int64,
        "cluster": pl.String,
        "margin": pl.Float64,
        "correct": pl.Boolean,
        "posts": pl.Int64,
        "words": pl.Int64,
        "distance": pl.Float64,
    }
)
"""A row a decision: the `pair` of an item, which is 0 where it has one. margin: of the rewards, the better response's
first; null where one is no number. correct: it is above 0. Of what is told of the person (the same in all conditions):
posts, how many their profile has; words, how long the text is; distance, 1 less its cosine with the question. The last
two are null where nothing is told."""


class SetRecord(Table):
    """What is decided: how many items of how many users, and of how many items the user has a persona.

    by_config: its overall number is the mean over configs.
    """

    title: str
    items: int
    users: int
    personas: int = 0
    configs: tuple[str, ...]
    by_config: bool = False


class TrainedRecord(Table):
    """A trained model. folder: in the directory of the run. digest: of its files. training: what its own record says.

    told: how its method is told of the person, see `pluralbench.descriptions.Prompt`.
    """

    method: str
    condition: Condition
    seed: int
    told: Told
    folder: str
    digest: str | None = None
    training: dict[str, Any] = Field(default_factory=dict)


class PersonalizeRecord(Table):
    """All that `personalize` says of itself beside its items and numbers.

    embedding: how the backbone makes vectors. conditions: those that were compared. persona: whether a model of posts
    is given the persona as a second vector. data: by part (train, validation, test). trained_on: pairs and users.
    left_out: by part, items of whose user nothing is known to tell, and those that are too long.
    sets: by their names in the items. scored: the other benchmark and its data.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:personalize:1"] = Field(PERSONALIZE_SCHEMA, alias="$schema")
    schema_version: Literal[1] = SCHEMA_VERSION
    verb: Literal["personalize"] = "personalize"
    backbone: ModelRecord
    embedding: dict[str, Any] = Field(default_factory=dict)
    methods: tuple[str, ...]
    conditions: tuple[Condition, ...]
    persona: bool = False
    seeds: int
    benchmark: BenchmarkRecord
    data: dict[str, DataRecord]
    held_out: float | str | None = None
    trained_on: dict[str, int]
    left_out: dict[str, int] = Field(default_factory=dict)
    scored_benchmark: BenchmarkRecord | None = None
    scored_data: DataRecord | None = None
    sets: dict[str, SetRecord]
    models: tuple[TrainedRecord, ...]
    cost: CostRecord | None = None
    provenance: ProvenanceRecord


@dataclass(frozen=True)
class Personalized:
    """A finished directory of `personalize`. items: see `PERSONALIZE_ITEMS`. metrics: the long frame of its numbers."""

    path: Path
    items: pl.DataFrame
    metrics: pl.DataFrame
    record: PersonalizeRecord

    def estimate(self, metric: str, group: str, method: str, which: str | None, config: str | None = None) -> Estimate:
        """The number at exactly this place, all of it None where there is none.

        group: a set, or a set and what its items are binned by, as "new by words". which: a condition, a comparison
        of two as "with-without", or with a bin after it, as "with 2".
        """
        return self._numbers.get(Place(group, metric, config, method, which), Estimate(None))

    @cached_property
    def _numbers(self) -> dict[Place, Estimate]:
        return {
            Place(*(row[name] for name in Place._fields)): Estimate(*(row[name] for name in NUMBERS))
            for row in self.metrics.iter_rows(named=True)
        }


def read_personalized(path: str | Path) -> Personalized:
    """Read the directory of `personalize`. Raises `RunError` where it is none, or was not finished."""
    path = finished(path, PERSONALIZE_FILE, "directory of personalize")
    record = read_file(path / PERSONALIZE_FILE, PersonalizeRecord)
    metrics = frame_of_rows(read_file(path / METRICS_FILE, MetricsFile).rows)
    items = read_parquet(path / ITEMS_FILE, error=RunError)
    where = str(path / ITEMS_FILE)
    return Personalized(path, check_items(items, where), check_metrics(metrics, str(path / METRICS_FILE)), record)


def check_items(items: pl.DataFrame, where: str = "The items") -> pl.DataFrame:
    """The same frame. Raises `RunError` for columns other than those of `PERSONALIZE_ITEMS`."""
    if dict(items.schema) != dict(PERSONALIZE_ITEMS):
        raise RunError(f"{where} need the columns {', '.join(PERSONALIZE_ITEMS)}, and have {', '.join(items.columns)}.")
    if items.is_empty():
        raise RunError(f"{where}: there is no row.")
    return items


def write_personalized(output: Output, record: PersonalizeRecord, items: pl.DataFrame, metrics: pl.DataFrame) -> Path:
    """Fill an empty directory with the record, the items and the numbers; `output.publish` puts it in place."""
    staged = output.staging()
    check_items(items).write_parquet(staged / ITEMS_FILE)
    texts = {METRICS_FILE: metrics_text(check_metrics(metrics)), PERSONALIZE_FILE: record.model_dump_json(indent=2)}
    for name, text in texts.items():
        (staged / name).write_text(text + "\n", encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    return staged
