"""Configurations of `judge`, `judge-personas` and `synthesize`."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pluralbench_calls.chat import LOCAL, ConnectionConfig, ExtraFields
from pluralbench_rewards.prompts import JudgePrompt, load_prompt
from pluralbench_rewards.synthesize_me import SynthesisConfig
from pluralbench_runs import FrozenModel, RecipeError, one_line, read_small
from pydantic import Field, field_validator, model_validator

from pluralbench.config.fields import (
    SPLIT,
    Attempts,
    Configs,
    Limit,
    Location,
    Logprobs,
    MaxTokens,
    Temperature,
    TopP,
)

AnswerLanguage = Literal["target", "english"]
ReplyFormat = Literal["reasoned", "brief", "structured"]
Orders = Literal["both", "one"]
Criterion = Literal["quality", "person"]
Protocol = Literal["pairwise", "pointwise", "listwise"]
Vote = Literal["unanimous", "signed", "mean"]
VoteRule = Literal["majority", "mean"]
Oracle = Literal["titles", "reasons"]
VerdictParsing = Literal["lenient", "strict"]
Setting = Literal["standard", "certainty", "tie"]
Variables = Literal["all", "key", "least", "none", "key-code", "least-code"]
ORDERS = "Judge both orders of responses, or one, drawn by the seed or as in the data."
SAMPLING: dict[str, Any] = {"panel": "Sampling and votes"}
REPLY_FORMAT = (
    "With reasons, the verdict alone, or JSON that the server enforces. Default: reasoned; brief for personas; "
    "structured for the embedded model."
)


class ReplyConfig(FrozenModel):
    """The format of a judge's replies, with `default_format` where `reply_format` is None.

    The embedded model replies in JSON by default: it is too small to follow another format reliably.
    """

    default_format: ClassVar[ReplyFormat] = "reasoned"

    reply_format: ReplyFormat | None = Field(None, description=REPLY_FORMAT)

    @property
    def chosen_format(self) -> ReplyFormat:
        """The format of the reply."""
        return self.reply_format or self.default_format

    def for_model(self, model: object) -> Self:
        """Return a copy with the model's default format filled in."""
        default = "structured" if model == LOCAL else self.default_format
        return self.model_copy(update={"reply_format": self.reply_format or default})


class RubricFile(FrozenModel):
    """A rubric that every item gets, from a text file of this name without its suffix."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name


Rubric = Literal["data", "none"] | RubricFile


def load_rubric(path: str | Path) -> RubricFile:
    """Read a rubric from a text file in UTF-8. Raises `RecipeError` if it cannot be read or is empty."""
    if not Path(path).is_file():
        raise RecipeError(f"There is no rubric {str(path)!r}; give data, none or the path of a text file.")
    try:
        text = read_small(Path(path)).decode("utf-8-sig").strip()
    except (OSError, ValueError) as error:
        raise RecipeError(f"The rubric {path} cannot be read as text in UTF-8 ({one_line(error, 200)}).") from None
    if not text:
        raise RecipeError(f"The rubric {path} is empty; write what a good answer has, or give none.")
    return RubricFile(name=Path(path).stem, text=text)


class JudgeConfig(ReplyConfig):
    """An LLM judge's task, prompt and sampling.

    The oracle of Personalized RewardBench (appendix A.4) sees the posts too: `PromptConfig(profile="raw")`. With
    `orders="both"` two verdicts that disagree count as a tie; the paper judges one order (section 4.1).

    `prompt` takes a name or a path, too, and `rubric` the path of a text file, whose rubric every item gets in place of
    its own. What the prompt says about protocol and sampling applies to fields that are None.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"rubric_base_url"})

    prompt: JudgePrompt | None = Field(
        None,
        description="Prompt of another reward model. Default: ours.",
        json_schema_extra={"as_text": True, "metavar": "NAME[@DIR]|FILE.toml"},
    )
    rubric: Rubric = Field(
        "data",
        exclude_if=lambda rubric: rubric == "data",  # runs without it stay as they are
        description="Rubric that --prompt shows: that of each item (--column rubric=COLUMN), none, or that of a text "
        "file for all items.",
        json_schema_extra={"as_text": True, "metavar": "data|none|FILE"},
    )
    rubric_model: str | None = Field(None, description="Model that writes the rubric of --prompt.")
    rubric_base_url: str | None = Field(
        None, description="Its endpoint. Default: the judge's.", json_schema_extra={"metavar": "URL"}
    )
    protocol: Protocol | None = Field(
        None,
        description="pairwise: compare two responses; pointwise: rate each from 1 to 10; listwise: pick the best, in "
        "an order drawn by the seed. Default: the prompt's, or pairwise.",
    )
    orders: Orders = Field("both", description=ORDERS)
    criterion: Criterion = Field(
        "quality",
        description="quality: follow the user context if any, else quality; person: always judge for this user.",
    )
    oracle: Oracle | None = Field(
        None,
        description="Show the true rubric aspects: titles, or reasons too. The paper's oracle also sets --profile raw "
        "and --criterion person.",
    )
    verdict_parsing: VerdictParsing = Field(
        "lenient", description="strict: the verdict is the last line; lenient: anywhere, if unambiguous."
    )
    answer_language: AnswerLanguage = Field(
        "target",
        description="multilingual: language expected of responses; english: the authors' prompt.",
    )
    samples: int = Field(
        1,
        ge=1,
        le=1_000,
        description="Replies to each question and order, which vote; needs a temperature.",
        json_schema_extra=SAMPLING,
    )
    vote: VoteRule | None = Field(
        None,
        description="Vote of several replies: most frequent, or mean score. Default: majority; of ratings mean.",
        json_schema_extra=SAMPLING,
    )
    temperature: float | None = Field(
        None,
        ge=0,
        description="Sampling temperature; 0 is greedy. Default: the prompt's, or 0.",
        json_schema_extra=SAMPLING,
    )
    top_p: TopP = Field(None, json_schema_extra=SAMPLING)
    max_tokens: int | None = Field(
        None, ge=1, description="Maximum tokens per reply. Default: the prompt's, or 512.", json_schema_extra=SAMPLING
    )
    attempts: Attempts = Field(4, json_schema_extra=SAMPLING)
    extra: ExtraFields = Field(default_factory=dict, json_schema_extra=SAMPLING)
    logprobs: Logprobs = Field(default=False, json_schema_extra=SAMPLING)
    tie_margin: float | None = Field(
        None,
        ge=0,
        lt=0.5,
        description="With --logprobs: decide by the mean probability of both orders, a tie if this close to 1/2.",
        json_schema_extra=SAMPLING,
    )

    @field_validator("prompt", mode="before")
    @classmethod
    def _load(cls, prompt: object) -> object:
        return load_prompt(prompt) if isinstance(prompt, str | Path) else prompt

    @field_validator("rubric", mode="before")
    @classmethod
    def _load_rubric(cls, rubric: object) -> object:
        return load_rubric(rubric) if isinstance(rubric, str | Path) and rubric not in {"data", "none"} else rubric

    @model_validator(mode="after")
    def _has_probabilities(self) -> Self:
        protocol = self.protocol or ("pairwise" if self.prompt is None else self.prompt.protocol)
        if self.logprobs and protocol != "pairwise":
            raise ValueError(f'`logprobs=True` applies to `protocol="pairwise"`, not to {protocol}')
        if self.logprobs and self.prompt is not None and self.prompt.verdict.scale is not None:
            raise ValueError(
                f"`logprobs=True` needs a verdict of one letter or number, and the prompt {self.prompt.name} asks for "
                "scores"
            )
        if self.tie_margin is not None and not self.logprobs:
            raise ValueError("`tie_margin=...` requires `logprobs=True`")
        return self

    @model_validator(mode="after")
    def _fits_prompt(self) -> Self:
        if self.rubric_model is not None and (self.prompt is None or self.prompt.rubric is None):
            raise ValueError("`rubric_model=...` requires a `prompt=...` with a rubric")
        if self.rubric != "data" and (self.prompt is None or "rubric" not in self.prompt.variables):
            raise ValueError(f'`rubric="{self.rubric}"` requires a `prompt=...` that shows a rubric')
        if self.rubric != "data" and (self.oracle is not None or self.rubric_model is not None):
            raise ValueError(f'`rubric="{self.rubric}"` excludes `oracle=...` and `rubric_model=...`; leave out one')
        if self.rubric_base_url is not None and self.rubric_model is None:
            raise ValueError("`rubric_base_url=...` requires `rubric_model=...`")
        if self.rubric_model is not None and self.oracle is not None:
            raise ValueError("`rubric_model=...` and `oracle=...` both give the rubric; leave out one")
        if self.prompt is not None:
            if self.protocol not in {None, self.prompt.protocol}:
                raise ValueError(
                    f'The prompt {self.prompt.name} is {self.prompt.protocol}; leave out `protocol="{self.protocol}"`'
                )
            for name in ("reply_format", "criterion", "verdict_parsing", "answer_language"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"`{name}=...` changes our own prompt; leave it out with `prompt=...`")
        return self

    def for_model(self, model: object) -> Self:
        """Return a copy in which every field that is None has the prompt's or the model's default."""
        own = None if self.prompt is None else self.prompt.sampling
        defaults: dict[str, Any] = {
            "protocol": "pairwise" if self.prompt is None else self.prompt.protocol,
            "temperature": 0.0 if own is None or own.temperature is None else own.temperature,
            "top_p": None if own is None else own.top_p,
            "max_tokens": 512 if own is None or own.max_tokens is None else own.max_tokens,
        }
        changes = {name: value for name, value in defaults.items() if getattr(self, name) is None}
        if own is not None and own.top_k is not None:
            changes["extra"] = {"top_k": own.top_k} | self.extra
        chosen = self if self.prompt is not None else super().for_model(model)
        return chosen.model_copy(update=changes)

    def rubric_connection(self, connection: ConnectionConfig) -> ConnectionConfig:
        """Return the connection to the model that writes rubrics; the judge's key stays with the judge's endpoint."""
        if self.rubric_base_url is None:
            return connection
        return connection.model_copy(update={"base_url": self.rubric_base_url, "api_key_env": None})


class PersonaDataConfig(FrozenModel):
    """The items of the persona judge to evaluate."""

    location: Location = None
    configs: Configs = ()
    split: str = Field("test", description=SPLIT)


class PersonaJudgeConfig(ReplyConfig):
    """A persona judge's task and sampling. Defaults: "Can LLM be a Personalized Judge?" (section 4)."""

    default_format: ClassVar[ReplyFormat] = "brief"

    setting: Setting = Field(
        "certainty", description="standard: a choice; certainty: with a certainty from 1 to 100; tie: ties allowed."
    )
    variables: Variables = Field("all", description="Persona variables in the prompt.")
    limit: Limit = None
    orders: Orders = Field("one", description=ORDERS)
    temperature: Temperature = 0.7
    top_p: TopP = 0.95
    max_tokens: MaxTokens = 512
    attempts: Attempts = 4
    extra: ExtraFields = Field(default_factory=dict)
    logprobs: Logprobs = False


class SynthesizeConfig(ReplyConfig, SynthesisConfig):
    """Synthesis of personas and demonstrations, and its sampling."""

    temperature: Temperature = 0.0
    top_p: TopP = None
    max_tokens: MaxTokens = 512
    attempts: Attempts = 4
    extra: ExtraFields = Field(default_factory=dict)
