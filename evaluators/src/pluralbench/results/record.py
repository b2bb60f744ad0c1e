"""The record of a run: what was scored, how, with what and by which software; `run.json` holds it.

The same shape as JSON Schema is in `schema/run-1.json` beside this file; see `pluralbench.results.schemas`.
"""

import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pluralbench_calls import ChatPrice
from pluralbench_rewards import Mode, ModelRecord, Overflow, ServedRecord, Work
from pluralbench_runs import Table, versions
from pydantic import ConfigDict, Field, model_validator

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Clusters

SCHEMA_VERSION: Literal[1] = 1
RUN_SCHEMA: Literal["urn:pluralbench:run:1"] = "urn:pluralbench:run:1"
PACKAGES = (
    "pluralbench",
    "pluralbench-local",
    "pluralbench-measures",
    "pluralbench-rewards",
    "torch",
    "transformers",
    "tokenizers",
    "openai",
    "polars",
    "numpy",
)


class BenchmarkRecord(Table):
    """The benchmark as it was used. rule: how its overall number is made, as a sentence."""

    name: str
    title: str
    rule: str
    description: Benchmark


class ReferenceRecord(Table):
    """Where the items in the original language come from, if not from the data itself."""

    location: str
    revision: str | None = None
    rows: int


class EarlierRecord(Table):
    """Pairs that people decided before. rows: how many the data has. items_without: of people who have none before."""

    rows: int
    items_without: int


class DataRecord(Table):
    """Where the items come from. digest: of their content. rows: items by config. empty: ids with an empty text.

    on_empty: what was done with those. configs, split, limit: what was asked for; without it all configs and items, of
    the benchmark's split. clusters: what intervals take as drawn; null in runs of earlier versions, whose clusters are
    ids where the benchmark names no column, and in those of the persona judge, whose clusters are people.
    earlier: null where the benchmark knows of no earlier pairs. shard: the share that was scored, such as "2/8", of
    which all else here says nothing; null in a whole run.
    """

    location: str
    revision: str | None = None
    digest: str
    licence: str | None = None
    reference: ReferenceRecord | None = None
    rows: dict[str, int]
    ignored_columns: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    on_empty: str | None = None
    configs: tuple[str, ...] = ()
    split: str | None = None
    limit: int | None = None
    clusters: Clusters | None = None
    earlier: EarlierRecord | None = None
    shard: str | None = None


class PromptRecord(Table):
    """What the model was shown. A field that the verb does not have is null.

    profile, profile_size, plans_digest, personas_digest: what the prompt says of the person, of how many posts, by
    which plans or personas (of a file).
    setting, variables: of the persona judge. wordings_digest, prompts_digest, chat_template_digest: of the sentences
    around the person, of a judge's prompts, of a model's chat template.
    """

    profile: str | None = None
    profile_size: int | None = None
    plans_digest: str | None = None
    personas_digest: str | None = None
    oracle: bool | None = None
    answer_language: str | None = None
    setting: str | None = None
    variables: str | None = None
    prompts_version: str | None = None
    prompts_digest: str | None = None
    wordings_digest: str | None = None
    chat_template_digest: str | None = None


class ScoringRecord(Table):
    """How scores were computed. mode, work: null where the model is a function or runs elsewhere.

    on_overflow: null where the model is a function. served: by which servers, null where by none.
    tolerance: how far scores of another mode may lie from these. decisions_within_tolerance: how many have a smaller
    margin. invalid_reasons: why scores are no numbers, and how often.
    """

    mode: Mode | None = None
    on_overflow: Overflow | None = None
    tolerance: float = 0.0
    decisions_within_tolerance: int = 0
    items_truncated: int = 0
    items_dropped: int = 0
    items_from_an_earlier_part: int = 0
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    work: Work | None = None
    served: ServedRecord | None = None


class WithoutPersona(Table):
    """Items whose person the variable set tells nothing of, though it should; the first of their ids."""

    items: int = 0
    ids: tuple[str, ...] = ()


class JudgingRecord(Table):
    """How a judge was asked. A field that the verb does not have is null or empty.

    verdict_rule: how a verdict was read from a reply. readings: how many replies each rule can read. orders: null
    where responses were rated one by one (`pointwise`). calls, prompt_tokens, completion_tokens: of all tries.
    invalid_reasons: why verdicts could not be read, and how often. samples, certainty_threshold, ties_left_out,
    tasks_left_out, without_persona: of the persona judge.
    """

    reply: str
    orders: str | None = None
    pointwise: bool = False
    criterion: str | None = None
    verdict_rule: str | None = None
    attempts: int
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    samples: int | None = None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    readings: dict[str, int] = Field(default_factory=dict)
    certainty_threshold: float | None = None
    ties_left_out: dict[str, int] = Field(default_factory=dict)
    tasks_left_out: dict[str, str] = Field(default_factory=dict)
    without_persona: WithoutPersona | None = None


class CostRecord(Table):
    """What a run took; how many calls and tokens a judge needed is in `JudgingRecord`.

    seconds: of the work, models' loading included, over all parts of a run that was interrupted. price: US dollars for
    a million tokens as it was given, null without one. dollars: what all calls cost by it.
    """

    seconds: float = Field(ge=0)
    dollars: float | None = Field(None, ge=0)
    price: ChatPrice | None = None


class SeededRecord(Table):
    """A record with the seed of what was drawn for it, such as the order in which a judge saw two answers."""

    @model_validator(mode="before")
    @classmethod
    def _with_seed(cls, values: Any) -> Any:
        """In runs of earlier versions the seed stood in `bootstrap`, also where nothing was drawn."""
        if not isinstance(values, dict) or not isinstance(earlier := values.get("bootstrap"), dict):
            return values
        seed = {} if values.get("verb") == "score" else {"seed": earlier.get("seed")}
        return {name: value for name, value in values.items() if name != "bootstrap"} | seed


class GitRecord(Table):
    """The checkout that the code lay in. changed: whether tracked files differed from the commit."""

    commit: str
    changed: bool


class ProvenanceRecord(Table):
    """What made a run: when, by which command, with which software. git: null where the package is installed."""

    finished: str
    command: tuple[str, ...]
    python: str
    platform: str
    packages: dict[str, str]
    git: GitRecord | None = None


class ShardRecord(Table):
    """A share of the items from which a run was joined: where and by what it was scored. items: may be none."""

    shard: str
    items: int
    device: str | None = None
    cost: CostRecord | None = None
    provenance: ProvenanceRecord


class RunRecord(SeededRecord):
    """All that a run says of itself beside its items and metrics. scoring: null for judges; judging: null for models.

    seed: of a judge's draws; null for models, of which nothing is drawn.

    cost: null in runs of earlier versions. shards: what `merge` joined, and nothing else; the cost is then their sum,
    and `provenance` that of the joining.

    `$schema` in the file names the JSON Schema, and `schema_version` its version.
    """

    # Written and read by the names of the JSON: `$schema` is no name for an attribute.
    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:run:1"] = Field(RUN_SCHEMA, alias="$schema")
    schema_version: Literal[1] = SCHEMA_VERSION
    verb: Literal["score", "judge", "judge-personas"]
    model: ModelRecord
    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord
    scoring: ScoringRecord | None = None
    judging: JudgingRecord | None = None
    seed: int | None = None
    cost: CostRecord | None = None
    provenance: ProvenanceRecord
    shards: tuple[ShardRecord, ...] = ()


def provenance() -> ProvenanceRecord:
    """What this process is: time, command, machine, versions, and the code's commit where it is a checkout."""
    return ProvenanceRecord(
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        command=(Path(sys.argv[0]).name, *sys.argv[1:]),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=versions(PACKAGES),
        git=_git(),
    )


def _git() -> GitRecord | None:
    place = Path(__file__).parent
    if "site-packages" in place.parts:
        return None
    try:
        commit, changes = (
            subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603, S607 - fixed words
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return GitRecord(commit=commit.stdout.strip(), changed=bool(changes.stdout.strip()))
