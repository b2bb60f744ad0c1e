"""Records common to runs of all verbs: benchmark, data, prompt, cost and provenance."""

import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import ClassVar

from pluralbench_calls import ConnectionConfig, Price
from pluralbench_rewards import ServedRecord, Work
from pluralbench_runs import FrozenModel, PathText, Recipe, Seed, versions
from pydantic import Field, field_validator

from pluralbench.config import OnEmpty, Profile
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Clusters
from pluralbench.data.fields import is_none
from pluralbench.data.rules import check_names

EMBEDDED = "SmolLM2-135M-Instruct"
"""The model that is called `local`."""

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
    """Resolved settings of a run, with digests of its data, model and prompts.

    An interrupted run resumes only with equal settings, except those that are `runtime_only`.

    Attributes:
        verb: Command of the run.
    """

    verb: ClassVar[str]

    @property
    def shard(self) -> str | None:
        """Shard that was processed, such as "2/8"; None for a complete run."""
        return None


class ChatRunConfig(RunConfig):
    """Settings of a run that asks a chat model.

    Attributes:
        prompts_digest: Digest of the prompts.
        seed: Seed of the calls.
        connection: Endpoint of the model.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    prompts_digest: str
    seed: Seed
    connection: ConnectionConfig = ConnectionConfig()


class BenchmarkRecord(FrozenModel):
    """Description of the benchmark as used; `DataRecord.benchmark_digest` binds a resumed run to it.

    Attributes:
        name: Name of the benchmark.
        title: Title in reports.
        rule: Rule of the overall number, as a phrase.
        description: Full description.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"title", "rule", "description"})

    name: str
    title: str
    rule: str
    description: Benchmark

    @field_validator("description")
    @classmethod
    def _rules_exist(cls, description: Benchmark) -> Benchmark:
        check_names(description)
        return description


class ReferenceRecord(FrozenModel):
    """Source of the items in the original language, if not the data itself."""

    location: PathText
    revision: str | None = None
    rows: int


class EarlierRecord(FrozenModel):
    """Earlier decisions of the users.

    Attributes:
        rows: Number of earlier decisions in the data.
        items_without: Number of items whose user has no earlier decision.
    """

    rows: int
    items_without: int


class AnnotationsRecord(FrozenModel):
    """Votes of people.

    Attributes:
        votes: Number of votes on the items.
        annotators: Number of known people who voted.
        missing: Number of missing votes in the data.
        repeated: Number of votes in the data that are left out because their person voted on the item before.
        items_without: Number of items in the data without a vote, which are left out.
        same_responses: Number of responses in the data whose item has the text already.
        varying: Number of people of whom an attribute is left out because it varies.
    """

    votes: int
    annotators: int
    missing: int = 0
    repeated: int = 0
    items_without: int = 0
    same_responses: int = 0
    varying: int = 0


class DataRecord(FrozenModel):
    """Data of a run.

    Attributes:
        location: Directory, file or repository.
        revision: Commit on the Hub; null otherwise.
        digest: Digest of the items' content.
        benchmark_digest: Digest of the benchmark's description for these items; null for the persona judge.
        license: License of the data.
        reference: Source of the items in the original language; null if it is the data itself.
        rows: Number of items by config.
        ignored_columns: Columns that the benchmark does not use.
        empty: Ids of items with an empty text.
        on_empty: Handling of empty texts.
        missing: Ids of items with a text such as "nan", which programs write for a missing value.
        answered: Ids of items whose prompt contains the better response.
        configs: Selected configs; empty: all.
        split: Selected split; null: the benchmark's.
        limit: Maximum items per config; null: all.
        items: Number of items to draw; null: all. The benchmark's description has the strata.
        items_seed: Seed of the draw.
        clusters: Clusters of the intervals; null for the persona judge, whose clusters are users.
        history: Earlier decisions of the users; null if the benchmark has none.
        annotations: Votes of people; absent if the benchmark has none.
        left_out: Number of rows that are not among the benchmark's `rows`, by config.
        shard: Shard that was scored, such as "2/8"; null for a complete run. All other fields describe the complete
            data.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset(
        {
            "license",
            "reference",
            "rows",
            "ignored_columns",
            "empty",
            "missing",
            "answered",
            "split",
            "clusters",
            "history",
            "annotations",
            "left_out",
        }
    )

    location: PathText
    revision: str | None = None
    digest: str
    benchmark_digest: str | None = None
    license: str | None = None
    reference: ReferenceRecord | None = None
    rows: dict[str, int]
    ignored_columns: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    on_empty: OnEmpty | None = None
    missing: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    split: str | None = None
    limit: int | None = Field(None, ge=1)
    items: int | None = Field(None, ge=1)
    items_seed: Seed = 0
    clusters: Clusters | None = None
    history: EarlierRecord | None = None
    annotations: AnnotationsRecord | None = Field(None, exclude_if=is_none)
    left_out: dict[str, int] = Field(default_factory=dict)
    shard: str | None = None


class PromptRecord(FrozenModel):
    """User context in the prompts; fields are null if the verb has its own settings for it.

    Attributes:
        profile: Kind of user context.
        profile_size: Maximum number of posts.
        plans_digest: Digest of the plans; null without a file.
        personas_digest: Digest of the personas; null without a file.
        wordings_digest: Digest of the sentences around the user context.
    """

    profile: Profile | None = None
    profile_size: int | None = Field(None, ge=1)
    plans_digest: str | None = None
    personas_digest: str | None = None
    wordings_digest: str | None = None


class ScoringRecord(FrozenModel):
    """Record of the scoring.

    Attributes:
        tolerance: Estimated difference of the scores from those of another mode; null if not measured.
        decisions_within_tolerance: Number of decisions with a smaller margin than the tolerance; null without one.
        items_truncated: Number of truncated items.
        items_dropped: Number of items that were dropped because they are too long.
        items_without_context: Number of items that were dropped because they lack the user context that a personalized
            model reads.
        items_rendered_identically: Number of items with different responses that have the same tokens.
        inputs_with_two_bos: Number of conversations that begin with two or more BOS tokens; null if not counted.
        inputs_without_bos: Number of conversations without a BOS token at the beginning although the tokenizer has
            one; null if not counted.
        inputs_ending_in_padding: Number of conversations that end with the padding token, which the model does not
            read; null if the last token is read.
        items_resumed: Number of items whose scores come from an interrupted run.
        invalid_reasons: Number of scores that are not finite, by reason.
        work: Computation in this process; null for a function or a remote model.
        served: Inference servers; null without servers.
    """

    tolerance: float | None = None
    decisions_within_tolerance: int | None = None
    items_truncated: int = 0
    items_dropped: int = 0
    items_without_context: int = Field(0, exclude_if=lambda count: count == 0)
    items_rendered_identically: int = 0
    inputs_with_two_bos: int | None = None
    inputs_without_bos: int | None = None
    inputs_ending_in_padding: int | None = Field(None, exclude_if=lambda count: count is None)
    items_resumed: int = 0
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    work: Work | None = None
    served: ServedRecord | None = None


class CostRecord(FrozenModel):
    """Cost of a run. The numbers of calls and tokens are in the result.

    Attributes:
        seconds: Seconds of work, including loading, over all parts of an interrupted run.
        dollars: Cost of all calls in US dollars; null without a price.
        price: Price in US dollars per million tokens; null if not given.
    """

    seconds: float = Field(ge=0)
    dollars: float | None = Field(None, ge=0)
    price: Price | None = None


class UsageRecord(FrozenModel):
    """Calls and tokens of a run, over all attempts.

    Attributes:
        calls: Number of calls.
        prompt_tokens: Number of prompt tokens of all calls.
        completion_tokens: Number of generated tokens of all calls.
        cached_tokens: Number of the prompt tokens that servers took from their prefix caches, as far as they report it.
        failed_calls: Number of calls that the server did not answer in any try; the same command sends them again.
        uncounted_calls: Number of answers without token counts, whose tokens and cost are not known.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    failed_calls: int = Field(0, exclude_if=lambda count: count == 0)
    uncounted_calls: int = Field(0, exclude_if=lambda count: count == 0)


class RunResult(FrozenModel):
    """Result of a run.

    Attributes:
        cost: Cost of the run; of merged shards their sum.
    """

    cost: CostRecord | None = None


class GitRecord(FrozenModel):
    """Git checkout of the code.

    Attributes:
        commit: Commit hash.
        changed: Whether tracked files differ from the commit.
    """

    commit: str
    changed: bool


class ProvenanceRecord(FrozenModel):
    """Time, command and software of a run.

    Attributes:
        finished: Time of completion, ISO 8601.
        command: Command line.
        python: Version of Python.
        platform: Operating system and machine.
        packages: Versions of the main packages.
        git: Checkout of the code; null for an installed package.
    """

    finished: str
    command: tuple[str, ...]
    python: str
    platform: str
    packages: dict[str, str]
    git: GitRecord | None = None


class ShardRecord(FrozenModel):
    """A shard of a merged run.

    Attributes:
        shard: Number and total, such as "2/8".
        items: Number of items; may be 0.
        device: Device that scored them.
        cost: Cost of the shard.
        provenance: Time, command and software of the shard.
    """

    shard: str
    items: int
    device: str | None = None
    cost: CostRecord | None = None
    provenance: ProvenanceRecord


def provenance() -> ProvenanceRecord:
    """Record time, command, machine and package versions of this process, and the commit of a checkout."""
    return ProvenanceRecord(
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        command=(Path(sys.argv[0]).name, *sys.argv[1:]),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=versions(PACKAGES),
        git=_git(),
    )


@cache  # a process has the code that it began with
def _git() -> GitRecord | None:
    folder = Path(__file__).parent
    if "site-packages" in folder.parts:
        return None
    try:
        commit, changes = (
            subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603, S607 - fixed words
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return GitRecord(commit=commit.stdout.strip(), changed=bool(changes.stdout.strip()))


def shown_name(name: str) -> str:
    """Return the name of a model in tables; that of the embedded model is its directory in the user's cache."""
    return EMBEDDED if Path(name).parts[-2:] == ("pluralbench", EMBEDDED) else name
