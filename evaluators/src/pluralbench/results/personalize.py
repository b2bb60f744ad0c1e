"""Config and result of `personalize`, and the columns of its items."""

from typing import Any, Literal

from pluralbench_local.personal.options import Method, PersonalConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import FrozenModel, Seed
from pydantic import Field

from pluralbench.config import PersonalizeConfig
from pluralbench.data.column_types import schema_of
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, RunConfig, RunResult

MODELS_FOLDER, EMBEDDINGS_FOLDER, FIGURES_FOLDER, PAGE_FILE = "models", "embeddings", "figures", "report.md"

Condition = Literal["without", "posts", "with", "shuffled"]
"""User context of a model: none, only the posts if `with` adds the persona, the full context, or another user's."""

ContextSource = Literal["raw", "persona"]
"""Source of a model's user context: the user's posts, or a persona."""

NEW, KNOWN, SCORED = "new", "known", "scored"
SETS = (NEW, KNOWN, SCORED)
"""Users without training data, later pairs of training users, and another benchmark."""

_DECIDED = ("method", "condition", "seed", "set", "config", "item", "pair", "cluster", "margin", "correct")
PERSONALIZE_ITEMS = schema_of(*_DECIDED, "posts", "words", "distance")
"""One row per decision. pair: number of the pair in its item. margin: reward of the better response minus that of the
worse one; null if a reward is not a finite number. correct: margin > 0. posts, words, distance: number of posts of the
user, length of the user context in words, and cosine distance of the context to the question, the same in all
conditions; the last two are null without user context."""


class PersonalizeRunConfig(RunConfig):
    """Settings that determine the numbers of `personalize`.

    Attributes:
        data: Data by split (train, validation, test).
        scored_benchmark: Another benchmark that the models score; null without one.
    """

    verb = "personalize"

    backbone: ModelRecord
    benchmark: BenchmarkRecord
    data: dict[str, DataRecord]
    held_out: str | None = None
    scored_benchmark: BenchmarkRecord | None = None
    scored_data: DataRecord | None = None
    prompt: PromptRecord
    personalizing: PersonalizeConfig
    options: PersonalConfig
    scoring: ScoringConfig


class SetRecord(FrozenModel):
    """Record of a set of decisions.

    Attributes:
        personas: Number of items whose user has a persona.
        by_config: Whether the overall number is the mean over configs.
    """

    title: str
    items: int
    users: int
    personas: int = 0
    configs: tuple[str, ...]
    by_config: bool = False


class TrainedRecord(FrozenModel):
    """A trained model.

    Attributes:
        user_context: User context that its method reads, as `pluralbench.config.PromptConfig.profile`.
        training: The model's record of its training.
    """

    method: Method
    condition: Condition
    seed: Seed
    user_context: ContextSource
    folder: str
    digest: str | None = None
    training: dict[str, Any] = Field(default_factory=dict)


class TrainedOn(FrozenModel):
    """Numbers of items and users that all models were trained on."""

    items: int
    users: int


class PersonalizeResult(RunResult):
    """Result of `personalize`, without its items and numbers.

    Attributes:
        embedding: How the backbone embeds texts.
        excluded: Number of excluded items by split: without user context, or too long.
    """

    embedding: dict[str, Any] = Field(default_factory=dict)
    conditions: tuple[Condition, ...]
    trained_on: TrainedOn
    excluded: dict[str, int] = Field(default_factory=dict)
    sets: dict[str, SetRecord]
    models: tuple[TrainedRecord, ...]
