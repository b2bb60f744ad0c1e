"""Recipes of studies: the policy, the reward models, the benchmarks and the downstream measurements."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_policies.config import OptimizeConfig
from pluralbench_runs import FolderName, FrozenModel, Recipe, Seed, check_recipe, read_recipe, recipe_path
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
"""Directory of the studies in this package."""

COLUMNS = {"model", "best-of-n", "optimization"}
"""Columns of `scores.csv` other than those of the benchmarks."""


class Items(FrozenModel):
    """Items of a benchmark and their user context; see `DataConfig` and `PromptConfig`.

    Attributes:
        sample: Name of a sample of the study whose judged pairs are used instead of a location.
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
    def arguments(self) -> dict[str, Any]:
        """The arguments `benchmark`, `data` and `prompt` of the evaluation functions."""
        data = DataConfig(
            location=self.location, configs=self.configs, split=self.split, columns=self.columns, limit=self.limit
        )
        prompt = DownstreamPromptConfig(profile=self.profile, profile_size=self.profile_size)
        return {"benchmark": self.benchmark, "data": data, "prompt": prompt}


class Sample(FrozenModel):
    """Candidates of the study's policy, and the pairs to which the judge gives different values.

    Attributes:
        items: Prompts to answer.
        pairs: Maximum number of pairs per prompt, drawn with the study's seed.
    """

    items: Items
    pairs: int = Field(32, ge=1)


class Training(FrozenModel):
    """A reward model that the study trains.

    Attributes:
        base: Language model to train: a directory, ORG/NAME, or `"local"` for the embedded model.
        items: Training items.
        pairs: Maximum number of items, drawn with the study's seed; 0 keeps the random head. Default: all.
        label_noise: Share of the items whose labels are flipped.
        options: Options of `TrainingConfig`.
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


class Model(FrozenModel):
    """A reward model of the study.

    Attributes:
        name: Name in the results, and of a folder of the study.
        path: Directory or ORG/NAME of an existing reward model.
        train: Settings of a reward model that the study trains, instead of `path`.
        position: Position on the study's `axis`.
    """

    name: FolderName
    path: str | None = None
    train: Training | None = None
    position: float | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.path is None) == (self.train is None):
            raise ValueError(f"the model {self.name} needs either a `path` or a table `train`")
        return self


class BestOfN(FrozenModel):
    """Best-of-N with every reward model, on the prompts of `items`."""

    items: Items


class Optimization(FrozenModel):
    """Policy optimization against every reward model.

    Attributes:
        train: Training prompts. Default: the prompts of `items`.
        items: Prompts whose answers are judged.
        options: Algorithm and training options.
        trained: Policies that were trained elsewhere, which are judged and not trained, by the reward model that they
            were trained against: a directory or ORG/NAME.
    """

    train: Items | None = None
    items: Items
    options: OptimizeConfig = OptimizeConfig()
    trained: dict[str, str] = Field(default_factory=dict)


class StudyRecipe(Recipe):
    """Recipe of a study.

    Attributes:
        title: Title of the report.
        about: Text below the title.
        seed: Seed of all draws.
        policy: Directory or ORG/NAME, `"local"` (the embedded model), or a model of `policy_connection`.
        models: Reward models to compare.
        benchmarks: Benchmarks that score the reward models, by name. The first one's predictions are evaluated; the
            others are its baselines.
        samples: Judged candidates to train reward models on or to build benchmarks from, by name.
        best_of_n: Best-of-N with every reward model. Default: none.
        optimization: Policy optimization against every reward model. Default: none.
        sampling: Sampling of candidates; see `best_of_n`.
        outcome: Judge and measure; see `best_of_n`.
        scoring: Options of the reward models.
        runtime: Device and precision of models in this process.
        axis: Label of the x axis that the models' `position` values are on, for a curve of benchmark scores.
        policy_connection: Endpoint of the policy. Default: none, the policy runs in this process.
        judge_connection: Endpoint of the judge.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset(
        {"policy_connection", "judge_connection", "runtime.device", "scoring.token_budget"}
    )

    title: str
    about: str = ""
    seed: Seed = 0
    policy: str | None = None
    models: tuple[Model, ...] = Field(min_length=1)
    benchmarks: dict[FolderName, Items] = Field(default_factory=dict)
    samples: dict[FolderName, Sample] = Field(default_factory=dict)
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
        """Use the study's seed for policy optimization if it has none of its own."""
        match values:
            case {"seed": seed, "optimization": {"options": {**options}, **optimization}}:
                return {**values, "optimization": {**optimization, "options": {"seed": seed, **options}}}
            case {"seed": seed, "optimization": {**optimization}} if "options" not in optimization:
                return {**values, "optimization": {**optimization, "options": {"seed": seed}}}
        return values

    @model_validator(mode="after")
    def _check_recipe(self) -> Self:
        names = [model.name for model in self.models]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"two reward models are named {duplicate}; give them different names")
        reserved = sorted(COLUMNS & self.benchmarks.keys())
        if reserved:
            raise ValueError(f"a benchmark cannot be named {reserved[0]}, which is a column of scores.csv")
        if self.axis is not None and all(model.position is None for model in self.models):
            raise ValueError("`axis` needs models with a position on it; set `position` of the models")
        if self.policy is None and (self.best_of_n or self.optimization or self.samples):
            raise ValueError("sampling and optimization need a `policy`")
        if self.outcome.judge is None and (self.best_of_n or self.optimization or self.samples):
            raise ValueError("the policy's answers need a judge; set `judge` in [outcome]")
        if not self.benchmarks and not self.best_of_n and not self.optimization:
            raise ValueError("the study measures nothing; add a benchmark, [best_of_n] or [optimization]")
        others = sorted(self.optimization.trained.keys() - {*names}) if self.optimization else []
        if others:
            raise ValueError(f"`trained` of [optimization] names {others[0]}, which is no reward model of the study")
        used = {
            *(items.sample for items in self.benchmarks.values()),
            *(model.train.items.sample for model in self.models if model.train),
        } - {None}
        unknown = sorted(str(name) for name in used if name not in self.samples)
        if unknown:
            raise ValueError(f"[samples] has no sample {unknown[0]!r}")
        return self


def read_study(name: str | Path) -> StudyRecipe:
    """Read the recipe of a study: one of this package by its name, or a TOML file. Raises `RecipeError`."""
    return read_recipe(StudyRecipe, recipe_path(str(name), FOLDER))
