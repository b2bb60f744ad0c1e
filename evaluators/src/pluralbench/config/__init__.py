"""Configurations of runs, by the verbs that take them.

Runs record them in `run.json`, and the commands make their options from the fields. Heavy libraries are not imported
here, which keeps `--help` fast.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pluralbench_calls.chat import ConnectionConfig, ExtraFields
from pluralbench_local import LocalModel, ServedModel
from pluralbench_local.personal.options import METHODS, PersonalConfig
from pluralbench_local.training_config import TrainingConfig
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.language_models import LIBRARY, Library
from pluralbench_policies.planner_options import PlannerConfig
from pluralbench_rewards import Mode, ScoringConfig
from pluralbench_rewards.served.engine import ServingConfig
from pluralbench_runs import ClusterConfig, FrozenModel, Seed, did_you_mean
from pluralbench_tables import Dialect, Quoting, Separator
from pydantic import Field, field_validator, model_validator

from pluralbench.config.fields import PLACE, SPLIT, Attempts, Configs, Limit, Location, MaxTokens, Temperature, TopP
from pluralbench.config.judges import JudgeConfig, PersonaDataConfig, PersonaJudgeConfig, RubricFile, SynthesizeConfig

__all__ = [
    "AspectMatchingConfig",
    "ClusterConfig",
    "ConnectionConfig",
    "DataConfig",
    "DownstreamPromptConfig",
    "ExactScoringConfig",
    "JudgeConfig",
    "LocalModel",
    "OptimizeConfig",
    "OutcomeConfig",
    "PersonaDataConfig",
    "PersonaJudgeConfig",
    "PersonalConfig",
    "PersonalizeConfig",
    "PlanConfig",
    "PlannerConfig",
    "PromptConfig",
    "RewardServerConfig",
    "RubricFile",
    "RuntimeConfig",
    "SamplingConfig",
    "ScoringConfig",
    "ServedModel",
    "ServingConfig",
    "SynthesizeConfig",
    "TrainingConfig",
]

OnEmpty = Literal["error", "drop", "keep"]
Profile = Literal["none", "raw", "plan", "persona"]
Measure = Literal["rubric", "rating", "win"]
Judged = Literal["all", "selected"]
Compared = Literal["both", "without", "with", "all"]

PLANS = "For --profile plan: output of `plan`, or JSON Lines with id and aspects."
PERSONAS = (
    "Output of `synthesize`, or JSON Lines with persona and the id of an item or a user. Default: the data's personas."
)
PROFILE = "User context: none, posts (raw), inferred aspects (plan) or a description (persona)."


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _assignments(value: Any) -> Any:
    """Convert a mapping, as in a benchmark file, to the options' form NAME=VALUE."""
    if not isinstance(value, Mapping):
        return value
    lists = {name: [own] if isinstance(own, str | float) else own for name, own in value.items()}
    return tuple(f"{name}={','.join(map(str, own))}" for name, own in lists.items())


# Data, user context and hardware


class DataConfig(FrozenModel):
    """The items of a benchmark to evaluate.

    `columns` and `labels` also take a mapping, such as `columns={"prompt": "question"}`.
    """

    location: Location = None
    configs: Configs = ()
    split: str | None = Field(None, description=SPLIT)
    separator: Separator | None = Field(None, description="Separator of CSV and TSV files. Default: the header's.")
    quoting: Quoting | None = Field(
        None,
        description="Quotation marks in quoted cells of CSV and TSV: doubled (default) or after a backslash; none: "
        "files that never quote, such as MQM's and MLQE-PE's.",
    )
    columns: tuple[str, ...] = Field(
        (),
        description="Name of a column in the data, such as prompt=text; repeatable.",
        json_schema_extra={"flag": "--column", "metavar": "FIELD=COLUMN"},
    )
    labels: tuple[str, ...] = Field(
        (),
        description="Meaning of a pair's label: first=A>B, second=B>A, tie=A=B, or scale=-3,3; repeatable.",
        json_schema_extra={"flag": "--label-value", "metavar": "MEANING=VALUE"},
    )
    limit: Limit = None
    items: int | None = Field(
        None,
        ge=1,
        description="Number of items to draw, stratified by subset. Default: all.",
    )
    items_seed: Seed = Field(0, description="Seed of the draw of --items.")
    on_empty: OnEmpty | None = Field(
        None,
        description="Empty prompts or responses. Default: the benchmark's choice; error for your data.",
    )
    english: str | None = Field(
        None,
        description="English original of multilingual data without one, for the drop from English.",
        json_schema_extra={"metavar": PLACE},
    )
    legacy: bool = Field(
        default=False, description="Compute metrics as the authors' code does (multilingual, chinese)."
    )
    step_threshold: float | None = Field(
        None,
        allow_inf_nan=False,
        description="processbench: score below which a step is wrong. Default: 0.5, for scores from 0 to 1.",
    )
    tune_step_threshold: str | None = Field(
        None,
        description="processbench: config on which the threshold with the largest F1 is taken. That is tuning on test "
        "data, and the run says so.",
        json_schema_extra={"metavar": "CONFIG"},
    )

    _mappings: ClassVar[Any] = field_validator("columns", "labels", mode="before")(_assignments)

    @property
    def dialect(self) -> Dialect:
        """Separator and quoting of CSV and TSV files."""
        return Dialect(self.separator, self.quoting)


FOR_ALL_BENCHMARKS = ("limit", "items", "items_seed")
"""Fields of `DataConfig` that can be set for all benchmarks of a suite."""
OF_ONE_BENCHMARK = tuple(name for name in DataConfig.model_fields if name not in FOR_ALL_BENCHMARKS)
"""The other fields, which belong to a single benchmark."""


def as_data_config(data: str | Path | DataConfig | None) -> DataConfig:
    """Convert a location to a `DataConfig`."""
    return data if isinstance(data, DataConfig) else DataConfig(location=None if data is None else str(data))


class PromptConfig(FrozenModel):
    """The user context in the prompt."""

    profile: Profile = Field("none", description=PROFILE)
    profile_size: int = Field(10, ge=1, description="Maximum posts per user.")
    plans: Path | None = Field(None, description=PLANS)
    personas: Path | None = Field(None, description=PERSONAS)


def as_prompt_config(prompt: Profile | PromptConfig | None) -> PromptConfig:
    """Convert the name of a kind of user context to a `PromptConfig`. Raises `ConfigError` if there is none."""
    if isinstance(prompt, PromptConfig):
        return prompt
    return PromptConfig() if prompt is None else PromptConfig(profile=prompt)


class DownstreamPromptConfig(PromptConfig):
    """The user context of policies and reward models, the same for both (Personalized RewardBench, section 5.1)."""

    profile: Profile = Field("raw", description=PROFILE)


class RuntimeConfig(FrozenModel):
    """Hardware and precision of models in this process."""

    device: str = Field(
        "auto", description="auto, cpu, cuda, cuda:1, spread over all GPUs, or all: scored by a process on each GPU."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Dtype of the weights; auto: as saved."
    )
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your permissions."
    )


class GenerationRuntime(RuntimeConfig):
    """Hardware, precision, library and chat template of a language model that generates in this process."""

    library: Library = Field("transformers", description=LIBRARY)

    chat_template: Path | None = Field(None, description="Jinja file to use instead of the tokenizer's chat template.")
    date: str | None = Field(
        None,
        description="Date (YYYY-MM-DD) in place of today's, which some chat templates write. Default: 2024-07-26, so "
        "that no number depends on the day.",
    )


# Planners and personalized models: plan, personalize


class PlanConfig(FrozenModel):
    """Sampling of plans. Defaults: LaMP-QA's code, on which Personalized RewardBench builds, but for `max_tokens`.

    That code allows 4096 tokens. A plan is a list of few words a line; one longer than 512 tokens repeats itself.
    """

    temperature: Temperature = 0.1
    top_p: TopP = 0.95
    max_tokens: MaxTokens = 512
    extra: ExtraFields = Field(default_factory=dict)


class AspectMatchingConfig(FrozenModel):
    """When an aspect of a plan matches a true aspect; see `pluralbench.planning.aspects`."""

    min_word_overlap: float = Field(0.5, gt=0, le=1, description="Minimum word overlap of aspects that match.")
    encoder: str | None = Field(
        None,
        description="Also match aspects by embeddings of this sentence-transformers model: a folder or ORG/NAME.",
        json_schema_extra={"metavar": "MODEL"},
    )
    min_cosine: float = Field(0.6, gt=0, le=1, description="Minimum cosine similarity of aspects that match.")


class RecheckConfig(FrozenModel):
    """How items are scored again, to find out why scores differ; see `pluralbench.evaluation.causes`."""

    items: int | None = Field(
        None,
        ge=0,
        description="Score the N items with the largest differences again, to find the cause. Default: 8 if the model "
        "is a directory, else 0.",
        json_schema_extra={"flag": "--rescore", "metavar": "N"},
    )
    data: str | None = Field(
        None,
        description="Current location of the run's data, if it has moved.",
        json_schema_extra={"metavar": PLACE, "panel": ""},
    )
    model: str | None = Field(None, description="Current directory or name of the model, if it has moved.")
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your permissions."
    )


class PersonalizeConfig(FrozenModel):
    """The personalized reward models to train, and the conditions to compare.

    These are the contrasts of Personalized RewardBench: appendix A.3 withholds the profile, B adds the persona to it.
    """

    methods: tuple[str, ...] = Field(
        METHODS,
        description="Methods to train, such as bt,gpo. Default: bt, gpo, vpl, pal and synthesizeme.",
        json_schema_extra={"as_text": True, "metavar": "M,M,..."},
    )
    profile: Compared = Field(
        "both",
        description="Train without user context, with it, or both; all: also evaluate with another user's context.",
    )
    persona: bool = Field(default=False, description="Also train models that read the user's persona beside the posts.")
    seeds: int = Field(3, ge=1, le=1000, description="Models per method, with the seeds 0, 1, ...")

    _names: ClassVar[Any] = field_validator("methods", mode="before")(_split)

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        unknown = next((name for name in methods if name not in METHODS), None)
        if unknown is not None:
            hint = did_you_mean(unknown, METHODS)
            raise ValueError(f"unknown method `{unknown}`; {hint}choose from {', '.join(METHODS)}")
        twice = next((name for name in methods if methods.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the method `{twice}` is listed twice")
        return methods


# Policies: best-of-n, optimize


class SamplingConfig(FrozenModel):
    """Sampling of candidates from a policy. Defaults: Personalized RewardBench's code."""

    n: int = Field(16, ge=1, le=100_000, description="Candidates per prompt.")
    k: tuple[int, ...] = Field(
        (),
        description="Sizes of best-of-k, such as 1,2,4. Default: the powers of 2 up to --n, and --n.",
        json_schema_extra={"as_text": True, "metavar": "K,K,..."},
    )
    temperature: Temperature = 1.0
    top_p: TopP = 0.9
    max_tokens: int = Field(512, ge=1, description="Maximum tokens per sampled answer.")

    _numbers: ClassVar[Any] = field_validator("k", mode="before")(_split)

    @model_validator(mode="after")
    def _within(self) -> Self:
        beyond = [k for k in self.k if not 1 <= k <= self.n]
        if beyond:
            raise ValueError(f"`k={beyond[0]}` is not between 1 and `n={self.n}`, the candidates per prompt")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of best-of-k, ascending. The first is 1, the policy by itself."""
        powers = {2**power for power in range(self.n.bit_length())}
        return tuple(sorted({1, *self.k} if self.k else {*powers, self.n}))


class OutcomeConfig(FrozenModel):
    """The downstream outcome of candidates.

    The expected best-of-k needs `judged="all"`. "win" follows CHEEMS (section 6.2): 1 where the judge prefers the
    candidate to another sample of the policy, else -1.
    """

    judge: str | None = Field(
        None,
        description="Model of --judge-base-url (default: OpenAI's API), local, or rubric-overlap: counts words of the "
        "aspects, without a model. Default: no outcome.",
        json_schema_extra={"flag": "--judge", "metavar": "MODEL"},
    )
    measure: Measure = Field(
        "rubric",
        description="rubric: mean over aspects of 0, 1 or 2; rating: 1 to 10; win: against another sample.",
        json_schema_extra={"flag": "--measure"},
    )
    judged: Judged = Field(
        "all",
        description="all candidates, or only those selected by a reward model, which takes fewer calls.",
        json_schema_extra={"flag": "--judged"},
    )
    max_tokens: int = Field(512, ge=1, description="Maximum tokens per reply of the judge.")
    attempts: Attempts = 4


class ExactScoringConfig(ScoringConfig):
    """Inference settings of a served model, whose rewards do not depend on what else is in a batch."""

    mode: Mode = Field("exact", description=ScoringConfig.model_fields["mode"].description)


class RewardServerConfig(FrozenModel):
    """The address of a server of rewards, and what it accepts."""

    host: str = Field("127.0.0.1", description="Address to listen at; 0.0.0.0 is every network of this machine.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen at; 0 is a free one.")
    client_key_env: str | None = Field(
        None, description="Environment variable with the key that clients have to send. Default: no key."
    )
    served_name: str | None = Field(
        None, min_length=1, description="Name of the model in requests and replies. Default: its path or name as given."
    )
    max_request_size: int = Field(64, ge=1, le=4096, description="Maximum size of a request in MiB.")
    ending: str = Field(
        "",
        description="Text at the end of OpenRLHF's queries that is not of the response, such as <|im_end|>. "
        "Default: that of the chat template, or the EOS token.",
    )
