"""What a study is asked to do: a policy, reward models, benchmarks, and what is measured downstream."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_policies.config import OptimizeConfig
from pluralbench_runs import FrozenModel, Recipe, check_recipe, read_recipe, recipe_path
from pydantic import Field, field_validator, model_validator

from pluralbench.config import (
    DataConfig,
    DownstreamPromptConfig,
    OutcomeConfig,
    Profile,
    RuntimeConfig,
    SamplingConfig,
    ScoringConfig,
    TrainingConfig,
)

FOLDER = Path(__file__).parent / "studies"
"""The studies of this package."""
COLUMNS = {"model", "best-of-n", "optimization"}
"""What `scores.csv` has beside a column for each benchmark."""


class Items(FrozenModel):
    """Items of a benchmark: where they are, and what is told about the person. See `DataConfig` and `PromptConfig`.

    sample: in place of a location, the pairs of candidates that the judge tells apart in this sample of the study.
    """

    benchmark: str = "personalized"
    location: str | None = None
    sample: str | None = None
    configs: tuple[str, ...] = ()
    split: str | None = None
    columns: tuple[str, ...] = ()
    limit: int | None = Field(None, ge=1)
    profile: Profile = "raw"
    profile_size: int = Field(10, ge=1)

    @property
    def asked(self) -> dict[str, Any]:
        """Which items, and what is told about the person, as the verbs take it."""
        data = DataConfig(
            location=self.location, configs=self.configs, split=self.split, columns=self.columns, limit=self.limit
        )
        prompt = DownstreamPromptConfig(profile=self.profile, profile_size=self.profile_size)
        return {"benchmark": self.benchmark, "data": data, "prompt": prompt}


class Sample(FrozenModel):
    """Candidates of the study's policy for some prompts, and the pairs of them that the judge tells apart.

    pairs: the most of each prompt, drawn by the seed.
    """

    items: Items
    pairs: int = Field(32, ge=1)


class Training(FrozenModel):
    """A reward model trained in the study. base: a language model, or "local", the embedded one's weights.

    pairs: the most of the items, drawn by the seed; with 0 the head stays as it is drawn. flip: this share of them is
    learned the wrong way round. options: of `TrainingConfig`.
    """

    base: str = "local"
    items: Items
    pairs: int | None = Field(None, ge=0)
    label_noise: float = Field(0.0, ge=0, le=1)
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _known(cls, options: dict[str, Any]) -> dict[str, Any]:
        check_recipe(TrainingConfig, options, "of the training")
        return options


Name = Annotated[str, Field(min_length=1, pattern=r"^[^/\\]+$")]
"""What is a directory of the study, too."""


class Model(FrozenModel):
    """A reward model of the study: a folder or ORG/NAME, or what is trained. at: its place on the study's `axis`."""

    name: Name
    path: str | None = None
    train: Training | None = None
    position: float | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.path is None) == (self.train is None):
            raise ValueError(f"the model {self.name} needs either a `path` or a table `train`")
        return self


class BestOfN(FrozenModel):
    """Best-of-N by every reward model. items: whose prompts are answered."""

    items: Items


class Optimization(FrozenModel):
    """The policy optimised against every reward model. train: prompts to optimise on. items: those that are judged."""

    train: Items | None = None
    items: Items
    options: OptimizeConfig = OptimizeConfig()


class StudyRecipe(Recipe):
    """A study.

    policy: a folder or ORG/NAME, "local" (the embedded model's weights), or a model of `policy_connection`. benchmarks:
    what the reward models are scored on, by name; the first is the one whose prediction is in question, and the others
    are its baselines. samples: candidates to learn from or to build a benchmark of. axis: what the models' `at` says,
    for a curve of the benchmarks' scores. sampling, outcome, scoring, running: as of `best_of_n`.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset(
        {"policy_connection", "judge_connection", "running.device", "scoring.token_budget"}
    )

    title: str
    about: str = ""
    seed: int = 0
    policy: str | None = None
    models: tuple[Model, ...] = Field(min_length=1)
    benchmarks: dict[Name, Items] = Field(default_factory=dict)
    samples: dict[Name, Sample] = Field(default_factory=dict)
    best_of_n: BestOfN | None = None
    optimization: Optimization | None = None
    sampling: SamplingConfig = SamplingConfig()
    outcome: OutcomeConfig = OutcomeConfig()
    scoring: ScoringConfig = ScoringConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    axis: str | None = None
    policy_connection: ConnectionConfig = ConnectionConfig()
    judge_connection: ConnectionConfig = ConnectionConfig()

    @model_validator(mode="before")
    @classmethod
    def _one_seed(cls, values: Any) -> Any:
        """Policy optimisation has the study's seed where it has none of its own, as training has."""
        match values:
            case {"seed": seed, "optimization": {"options": {**options}, **optimization}}:
                return {**values, "optimization": {**optimization, "options": {"seed": seed, **options}}}
            case {"seed": seed, "optimization": {**optimization}} if "options" not in optimization:
                return {**values, "optimization": {**optimization, "options": {"seed": seed}}}
        return values

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names = [model.name for model in self.models]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two reward models are named {twice}; give each a name of its own")
        taken = sorted(COLUMNS & self.benchmarks.keys())
        if taken:
            raise ValueError(f"a benchmark cannot be named {taken[0]}, as a column of scores.csv is")
        if self.axis is not None and all(model.position is None for model in self.models):
            raise ValueError("nothing has a place on the `axis`: say of models where they are `at`")
        if self.policy is None and (self.best_of_n or self.optimization or self.samples):
            raise ValueError("sampling and optimising need a `policy`")
        if self.outcome.judge is None and (self.best_of_n or self.optimization or self.samples):
            raise ValueError("what the policy answers has to be judged: give [outcome] a `judge`")
        if not self.benchmarks and not self.best_of_n and not self.optimization:
            raise ValueError("there is nothing to measure: give a benchmark, [best_of_n] or [optimization]")
        asked = {
            *(items.sample for items in self.benchmarks.values()),
            *(model.train.items.sample for model in self.models if model.train),
        } - {None}
        unknown = sorted(str(name) for name in asked if name not in self.samples)
        if unknown:
            raise ValueError(f"there is no sample {unknown[0]!r} in [samples]")
        return self


def read_study(name: str | Path) -> StudyRecipe:
    """A study of this package by its name, or of a TOML file. Raises `RecipeError`."""
    return read_recipe(StudyRecipe, recipe_path(str(name), FOLDER))
