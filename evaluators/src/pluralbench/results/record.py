"""What runs of all verbs say of themselves: their benchmark, data and prompt, what they took, and what made them."""

import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from pluralbench_calls import Price
from pluralbench_rewards import ServedRecord, Work
from pluralbench_runs import FrozenModel, Recipe, versions
from pydantic import Field

from pluralbench.config import OnEmpty, Profile
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Clusters

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


class RunConfig(Recipe):
    """What was asked, resolved, with the digests of its data, model and prompts. verb: which command it is of.

    A run goes on only under the same, but for what is `runtime_only`.
    """

    verb: ClassVar[str]


class BenchmarkRecord(FrozenModel):
    """The benchmark as it was used. rule: how its overall number is made, as a sentence.

    `DataRecord.benchmark_digest` stands for the description where a run goes on.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"title", "rule", "description"})

    name: str
    title: str
    rule: str
    description: Benchmark


class ReferenceRecord(FrozenModel):
    """Where the items in the original language come from, if not from the data itself."""

    location: str
    revision: str | None = None
    rows: int


class EarlierRecord(FrozenModel):
    """Pairs that people decided before. rows: how many the data has. items_without: of people who have none before."""

    rows: int
    items_without: int


class DataRecord(FrozenModel):
    """Where the items come from. digest: of their content. rows: items by config. empty: ids with an empty text.

    benchmark_digest: of the benchmark's description, as it fits these items; null for the persona judge. on_empty: what
    was done with empty texts. answered: ids of prompts that contain the better response. configs, split, limit: what
    was asked for; without it all configs and items, of the benchmark's split. clusters: what intervals take as drawn;
    null for the persona judge, whose clusters are people.
    history: null where the benchmark knows of no earlier pairs. shard: the share that was scored, such as "2/8", of
    which all else here says nothing; null in a whole run.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset(
        {"license", "reference", "rows", "ignored_columns", "empty", "answered", "split", "clusters", "history"}
    )

    location: str
    revision: str | None = None
    digest: str
    benchmark_digest: str | None = None
    license: str | None = None
    reference: ReferenceRecord | None = None
    rows: dict[str, int]
    ignored_columns: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    on_empty: OnEmpty | None = None
    answered: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    split: str | None = None
    limit: int | None = Field(None, ge=1)
    clusters: Clusters | None = None
    history: EarlierRecord | None = None
    shard: str | None = None


class PromptRecord(FrozenModel):
    """What a prompt says about the person: null where the verb says it in other ways.

    plans_digest, personas_digest: of what a file tells. wordings_digest: of the sentences around it.
    """

    profile: Profile | None = None
    profile_size: int | None = Field(None, ge=1)
    plans_digest: str | None = None
    personas_digest: str | None = None
    wordings_digest: str | None = None


class ScoringRecord(FrozenModel):
    """How scores came out. work: null where the model is a function or runs elsewhere; served: null where no servers
    scored.

    tolerance: how far scores of another mode may lie from these. decisions_within_tolerance: how many have a smaller
    margin. items_rendered_alike: how many have responses that differ and make the same tokens. invalid_reasons: why
    scores are no numbers, and how often.
    """

    tolerance: float = 0.0
    decisions_within_tolerance: int = 0
    items_truncated: int = 0
    items_dropped: int = 0
    items_rendered_identically: int = 0
    items_resumed: int = 0
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    work: Work | None = None
    served: ServedRecord | None = None


class CostRecord(FrozenModel):
    """What a run took; how many calls and tokens a judge needed is in its result.

    seconds: of the work, models' loading included, over all parts of a run that was interrupted. price: US dollars for
    a million tokens as it was given, null without one. dollars: what all calls cost by it.
    """

    seconds: float = Field(ge=0)
    dollars: float | None = Field(None, ge=0)
    price: Price | None = None


class RunResult(FrozenModel):
    """What came of a run. cost: what it took; of joined shards their sum."""

    cost: CostRecord | None = None


class GitRecord(FrozenModel):
    """The checkout that the code lay in. changed: whether tracked files differed from the commit."""

    commit: str
    changed: bool


class ProvenanceRecord(FrozenModel):
    """What made a run: when, by which command, with which software. git: null where the package is installed."""

    finished: str
    command: tuple[str, ...]
    python: str
    platform: str
    packages: dict[str, str]
    git: GitRecord | None = None


class ShardRecord(FrozenModel):
    """A share of the items from which a run was joined: where and by what it was scored. items: may be none."""

    shard: str
    items: int
    device: str | None = None
    cost: CostRecord | None = None
    provenance: ProvenanceRecord


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
