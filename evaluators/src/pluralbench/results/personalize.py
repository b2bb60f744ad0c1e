"""What `personalize` is asked and what comes of it: what personalized models decide with and without a profile."""

from typing import Any, Literal

from pluralbench_local.personal.options import Method, PersonalConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import FrozenModel
from pydantic import Field

from pluralbench.config import PersonalizeConfig
from pluralbench.results.columns import schema_of
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, RunConfig, RunResult

MODELS_FOLDER, EMBEDDINGS_FOLDER, FIGURES_FOLDER, PAGE_FILE = "models", "embeddings", "figures", "report.md"

Condition = Literal["without", "posts", "with", "shuffled"]
ContextSource = Literal["raw", "persona"]
"""What a model knows of the person: nothing, their posts where `with` adds their persona, all that is told of them, or
what is told of somebody else."""

NEW, KNOWN, SCORED = "new", "known", "scored"
SETS = (NEW, KNOWN, SCORED)
"""Users of whom nothing was trained on, later pairs of users that were trained on, and another benchmark."""

_DECIDED = ("method", "condition", "seed", "set", "config", "item", "pair", "cluster", "margin", "correct")
PERSONALIZE_ITEMS = schema_of(*_DECIDED, "posts", "words", "distance")
"""A row a decision: the `pair` of an item, which is 0 where it has one. margin: of the rewards, the better response's
first; null where one is no number. correct: it is above 0. Of what is told of the person (the same in all conditions):
posts, how many their profile has; words, how long the text is; distance, 1 less its cosine with the question. The last
two are null where nothing is told."""


class PersonalizeRunConfig(RunConfig):
    """All that the numbers depend on. backbone: what was known of it before it was loaded.

    data: by part (train, validation, test). scored: the other benchmark and its data.
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
    """What is decided: how many items of how many users, and of how many items the user has a persona.

    by_config: its overall number is the mean over configs.
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
        folder: Folder of the model in the run directory.
        digest: Digest of its files.
        training: The model's record of its training.
    """

    method: Method
    condition: Condition
    seed: int
    user_context: ContextSource
    folder: str
    digest: str | None = None
    training: dict[str, Any] = Field(default_factory=dict)


class TrainedOn(FrozenModel):
    """What all models were trained on."""

    pairs: int
    users: int


class PersonalizeResult(RunResult):
    """What came of `personalize` beside its items and numbers.

    embedding: how the backbone makes vectors. conditions: those that were compared. left_out: by part, items of whose
    user nothing is known to tell, and those that are too long. sets: by their names in the items.
    """

    embedding: dict[str, Any] = Field(default_factory=dict)
    conditions: tuple[Condition, ...]
    trained_on: TrainedOn
    excluded: dict[str, int] = Field(default_factory=dict)
    sets: dict[str, SetRecord]
    models: tuple[TrainedRecord, ...]
