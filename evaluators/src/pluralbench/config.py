"""What is scored, what the prompt shows and how a judge is asked, as frozen descriptions.

A run's settings record them, and the options of the command are made from them. Nothing heavy is imported here, so that
`--help` is quick.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pluralbench_calls.chat import LOCAL, ConnectionConfig
from pluralbench_local import LocalModel, ServedModel
from pluralbench_local.personal.options import METHODS, PersonalConfig
from pluralbench_local.training_options import TrainingConfig
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.planner_options import PlannerConfig
from pluralbench_rewards import ScoringConfig
from pluralbench_rewards.served.serving import ServingConfig
from pluralbench_rewards.synthesize_me import SynthesisConfig
from pluralbench_runs import ClusterConfig, FrozenModel, did_you_mean
from pydantic import Field, field_validator, model_validator

__all__ = [
    "AspectMatchingConfig",
    "ClusterConfig",
    "ConnectionConfig",
    "DataConfig",
    "DownstreamPromptConfig",
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
AnswerLanguage = Literal["target", "english"]
Reply = Literal["reasoned", "brief", "structured"]
Orders = Literal["both", "one"]
Criterion = Literal["quality", "person"]
Oracle = Literal["titles", "reasons"]
Reading = Literal["lenient", "strict"]
Measure = Literal["rubric", "rating", "win"]
Judged = Literal["all", "selected"]
Compared = Literal["both", "without", "with", "all"]
Setting = Literal["standard", "certainty", "tie"]
Variables = Literal["all", "key", "least", "none", "key-code", "least-code"]

PLACE = "DIR|FILE|ORG/NAME[@REVISION]"
WHERE = "Where the items are; sample is a few that come with this package. Without it on the Hub."
CONFIG = "Only this config; repeatable."
SPLIT = "Which split of the data (all: every one); without it the benchmark's."
LIMIT = "At most so many items of each config."
TEMPERATURE = "Of sampling; 0 takes the likeliest token."
TOP_P = "Draw from the likeliest tokens of this total probability only."
PLANS = "For --profile plan: what `plan` wrote, or JSON Lines with id and aspects."
PERSONAS = (
    "JSON Lines with id (of an item or a person) and persona, or what `pluralbench synthesize` wrote; without it the "
    "data's own."
)
PROFILE = (
    "What is told of the person: nothing (none), their posts (raw), what a planner inferred (plan), or a description "
    "of them (persona)."
)
ATTEMPTS = "Tries for a reply that can be parsed."
MAX_TOKENS = "The most tokens of an answer."
ORDERS = "both: asked twice with the two swapped; one: asked once, in an order drawn by the seed or that of the data."
REPLY = (
    "With reasons, the verdict alone (brief), or JSON by a schema that the server enforces (structured). Without it "
    "reasoned, of personas brief, and of local structured."
)


def _parts(value: Any) -> Any:
    """What stands between the commas of a text."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


class DataConfig(FrozenModel):
    """Which items of a benchmark are scored, and where they are.

    location: a release or another directory, a file (.parquet, .jsonl, .json, .csv), or ORG/NAME[@REVISION] on the Hub.
    columns: which column is what, such as "prompt=text". labels: which label means what, such as "first=A>B".
    """

    location: str | None = Field(
        None,
        description=WHERE,
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    )
    configs: tuple[str, ...] = Field((), description=CONFIG, json_schema_extra={"flag": "--config"})
    split: str | None = Field(None, description=SPLIT)
    columns: tuple[str, ...] = Field(
        (),
        description="Which column is what, such as prompt=text; repeatable.",
        json_schema_extra={"flag": "--column", "metavar": "WHAT=COLUMN"},
    )
    labels: tuple[str, ...] = Field(
        (),
        description="Which labels of a pair mean what: first=A>B, second=B>A, tie=A=B, or scale=-3,3; repeatable.",
        json_schema_extra={"flag": "--label-value", "metavar": "MEANING=VALUE"},
    )
    limit: int | None = Field(None, ge=1, description=LIMIT)
    on_empty: OnEmpty | None = Field(
        None,
        description="What to do with an empty prompt or response; without it error for data of your own.",
    )
    english: str | None = Field(
        None,
        description="The English original of multilingual data that has none, for the drop from English.",
        json_schema_extra={"metavar": PLACE},
    )
    legacy: bool = Field(default=False, description="Count as the authors' code does: multilingual, chinese.")


class PromptConfig(FrozenModel):
    """What the prompt says about the person."""

    profile: Profile = Field("none", description=PROFILE)
    profile_size: int = Field(10, ge=1, description="Posts of a profile that go into a prompt.")
    plans: Path | None = Field(None, description=PLANS)
    personas: Path | None = Field(None, description=PERSONAS)


class PersonaDataConfig(FrozenModel):
    """Which items of the persona judge are asked about, and where they are; see `DataConfig`."""

    location: str | None = Field(
        None,
        description=WHERE,
        json_schema_extra={"flag": "--data", "metavar": PLACE},
    )
    configs: tuple[str, ...] = Field((), description=CONFIG, json_schema_extra={"flag": "--config"})
    split: str = Field("test", description=SPLIT)


class ReplyConfig(FrozenModel):
    """In which form a judge replies. usual: what is asked of a model where nobody says.

    The embedded model is then asked for JSON by a schema: it is too small to keep to a form by itself, and would write
    for most of a minute before it is known to have said nothing.
    """

    usual: ClassVar[Reply] = "reasoned"

    reply: Reply | None = Field(None, description=REPLY)

    @property
    def form(self) -> Reply:
        """The form of the reply."""
        return self.reply or self.usual

    def asked_of(self, model: str) -> Self:
        """This of a model: with the form that is asked of it where nobody says."""
        return self.model_copy(update={"reply": self.reply or ("structured" if model == LOCAL else self.usual)})


class JudgeConfig(ReplyConfig):
    """How a judge is asked.

    orders: "both" asks twice with the responses swapped, and calls it a tie where the verdicts disagree; "one" asks
    once, in an order drawn by the seed (the way of the paper of Personalized RewardBench, section 4.1). criterion:
    what the judge goes by, see `pluralbench_rewards.judge.Criterion`. oracle: show it the rubric aspects that the
    benchmark scores by, their titles alone or with the reasons; the paper's oracle (appendix A.4) sees the posts too
    (`PromptConfig(profile="raw")`). answer_language: of a benchmark in many languages, see
    `pluralbench.data.prompts.language_context`.
    """

    orders: Orders = Field("both", description=ORDERS)
    pointwise: bool = Field(default=False, description="Rate each answer by itself, from 1 to 10.")
    criterion: Criterion = Field(
        "quality",
        description="quality: what is said about the person decides, else the quality of the answer; person: what this "
        "very person most likely expects, also where nothing is said about them.",
    )
    oracle: Oracle | None = Field(
        None,
        description="Show the judge the true rubric aspects: their titles, or the reasons too. The oracle of the paper "
        "also has --profile raw and --criterion person.",
    )
    verdicts: Reading = Field(
        "lenient",
        description="Where a verdict is read: strict, alone in the last line; lenient, wherever it is unambiguous.",
    )
    answer_language: AnswerLanguage = Field(
        "target",
        description="Which language multilingual's judges expect; english is what the authors' runner says.",
    )
    temperature: float = Field(0.0, ge=0, description=TEMPERATURE)
    top_p: float | None = Field(None, gt=0, le=1, description=TOP_P)
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)


class SynthesizeConfig(ReplyConfig, SynthesisConfig):
    """How personas and demonstrations are found; see `SynthesisConfig`."""

    temperature: float = Field(0.0, ge=0, description=TEMPERATURE)
    top_p: float | None = Field(None, gt=0, le=1, description=TOP_P)
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)


class PersonaJudgeConfig(ReplyConfig):
    """How a judge for persons is asked. The sampling is that of "Can LLM be a Personalized Judge?" (section 4).

    setting: "standard" asks for a choice, "certainty" also for a certainty from 1 to 100, "tie" allows a tie as an
    answer. variables: which of the persona's sentences the judge is told. samples: at most so many items of each task.
    orders: "one" shows the options as the data places them; "both" asks again with them swapped.
    """

    usual: ClassVar[Reply] = "brief"

    setting: Setting = Field(
        "certainty", description="A choice alone (standard), with a certainty, or with a tie as an answer."
    )
    variables: Variables = Field("all", description="Which of the persona's variables the judge is told.")
    samples: int | None = Field(None, ge=1, description=LIMIT, json_schema_extra={"flag": "--limit"})
    orders: Orders = Field("one", description=ORDERS)
    temperature: float = Field(0.7, ge=0, description=TEMPERATURE)
    top_p: float | None = Field(0.95, gt=0, le=1, description=TOP_P)
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)


class DownstreamPromptConfig(PromptConfig):
    """What policy and reward models are told about the person: the same (Personalized RewardBench, section 5.1)."""

    profile: Profile = Field("raw", description=PROFILE)


class RuntimeConfig(FrozenModel):
    """How models run that are loaded into this process; see `LocalModel`."""

    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, or spread over all GPUs.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Precision; auto is as it was saved."
    )
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your rights."
    )


class SamplingConfig(FrozenModel):
    """How candidates are sampled from a policy; the defaults are those of Personalized RewardBench's code.

    n: candidates of each prompt. k: of how many the best is taken, without it the powers of 2 up to n, and n.
    """

    n: int = Field(16, ge=1, description="Candidates of each prompt.")
    k: tuple[int, ...] = Field(
        (),
        description="Best of how many, such as 1,2,4; without it the powers of 2 up to --n.",
        json_schema_extra={"as_text": True, "metavar": "K,K,..."},
    )
    temperature: float = Field(1.0, ge=0, description=TEMPERATURE)
    top_p: float | None = Field(0.9, gt=0, le=1, description=TOP_P)
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)

    _numbers: ClassVar[Any] = field_validator("k", mode="before")(_parts)

    @model_validator(mode="after")
    def _within(self) -> Self:
        beyond = [k for k in self.k if not 1 <= k <= self.n]
        if beyond:
            raise ValueError(f"the best of {beyond[0]:,} cannot be taken from {self.n:,} candidates; raise --n")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of how many candidates the best is taken, ascending, from 1, which is the policy by itself."""
        powers = {2**power for power in range(self.n.bit_length())}
        return tuple(sorted({1, *self.k} if self.k else {*powers, self.n}))


class PlanConfig(FrozenModel):
    """How plans are sampled: as LaMP-QA's code does (Personalized RewardBench builds on it), but for `max_tokens`.

    There it is 4096; a plan is a list of few words a line, and what is longer than 512 tokens repeats itself.
    """

    temperature: float = Field(0.1, ge=0, description=TEMPERATURE)
    top_p: float | None = Field(0.95, gt=0, le=1, description=TOP_P)
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)


class AspectMatchingConfig(FrozenModel):
    """When an aspect of a plan counts as one of the true aspects; see `pluralbench.planning.aspects`."""

    words: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Aspects are the same that share this much of their words.",
        json_schema_extra={"flag": "--same-words"},
    )
    encoder: str | None = Field(
        None,
        description="A model of sentence-transformers, a folder or ORG/NAME, to match aspects by their embeddings too.",
        json_schema_extra={"metavar": "MODEL"},
    )
    cosine: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Aspects are the same whose embeddings have at least this cosine.",
        json_schema_extra={"flag": "--same-cosine"},
    )


class OutcomeConfig(FrozenModel):
    """What is judged of the candidates, and how.

    judge: a model of the judge's endpoint, "local", "rubric-overlap" (see `pluralbench_rewards.rubric.overlap`), or
    None for no outcome. measure: "rubric" is the mean over the rubric aspects of 0, 1 or 2; "rating" a number from 1 to
    10; "win" 1 where the candidate is judged better than a further sample of the policy, else -1 (CHEEMS, section 6.2).
    judged: every candidate, which the expected best-of-k needs, or only those that are the best of the first k.
    """

    judge: str | None = Field(
        None,
        description="A model of --judge-base-url (without one, OpenAI's), local, or rubric-overlap, which counts words "
        "of the aspects and needs no model.",
        json_schema_extra={"flag": "--judge", "metavar": "MODEL"},
    )
    measure: Measure = Field(
        "rubric",
        description="rubric: 0 to 2 by the aspects; rating: 1 to 10; win: against another sample of the policy.",
        json_schema_extra={"flag": "--measure"},
    )
    judged: Judged = Field(
        "all",
        description="Every candidate, or only those that a reward model selects, which costs fewer calls.",
        json_schema_extra={"flag": "--judged"},
    )
    max_tokens: int = Field(512, ge=1, description=MAX_TOKENS)
    attempts: int = Field(4, ge=1, description=ATTEMPTS)


class PersonalizeConfig(FrozenModel):
    """Which personalized reward models are trained, and what they are compared under.

    methods: of `pluralbench_local.personal`. profile: "without" and "with" train models that know nothing of the person
    and models that are told of them, "both" the two; with "all" the latter are also told of another user. persona:
    models with a profile read the person's persona beside their posts, and others the posts alone: the contrasts of
    both appendices of Personalized RewardBench (A.3 withholds the profile, B adds the persona to it).
    """

    methods: tuple[str, ...] = Field(
        METHODS,
        description="Methods, such as bt,gpo; without it bt, gpo, vpl, pal and synthesizeme.",
        json_schema_extra={"as_text": True, "metavar": "M,M,..."},
    )
    profile: Compared = Field(
        "both",
        description="Train without a profile, with one, or both; all also shows those with one another user's.",
    )
    persona: bool = Field(
        default=False,
        description="Models with a profile read the user's persona beside the posts, and others the posts alone.",
    )
    seeds: int = Field(3, ge=1, description="Models of each method, by the seeds 0, 1, ...")

    _names: ClassVar[Any] = field_validator("methods", mode="before")(_parts)

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        unknown = next((name for name in methods if name not in METHODS), None)
        if unknown is not None:
            hint = did_you_mean(unknown, METHODS)
            raise ValueError(f"there is no method `{unknown}`; {hint}choose of {', '.join(METHODS)}")
        twice = next((name for name in methods if methods.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the method `{twice}` is given twice; leave one of them out")
        return methods
