"""The recipe of CheemsBench and CheemsPreference: the settings of a build."""

from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Literal, Self

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName
from pydantic import Field, field_validator, model_validator

RECIPES = Path(__file__).parent / "recipes"
SAMPLE = "sample"
TAXONOMY: Any = Field(SAMPLE, description="TOML file with the categories of --prompts, or `sample`.")


class PromptsTable(FrozenModel):
    """Prompts to annotate.

    Attributes:
        responses: Default: the writers answer the prompts.
        assigned: JSONL with `task`, `annotator` and `responses`, for tasks that were assigned elsewhere.
    """

    location: Location = Field(
        description="JSONL with id, input, category and config, or `sample`.", json_schema_extra={"flag": "--prompts"}
    )
    responses: Location | None = Field(None, description="JSONL with prompt, id, content and model.")
    taxonomy: Location = TAXONOMY
    checks: Location | None = Field(
        None, description="JSONL with `task` and the right marks (A_B, A_C, B_C) of check items."
    )
    assigned: Location | None = None


class Writer(ChatModel):
    """A model that answers the prompts.

    Attributes:
        base_url: Its endpoint. Default: the connection's.
        api_key_env: Environment variable with the API key of `base_url`.
    """

    base_url: str | None = None
    api_key_env: str | None = None


class Screening(FrozenModel):
    """Thresholds of the screening rules for responses. Lengths are in characters, shares from 0 to 1.

    The rules of language (`chinese`, `kana`) do not apply to responses that `few_letters`, `other_languages`,
    `asked_language`, `asked_code` or `asked_options` exempt.

    Attributes:
        longest: Largest length, in standard deviations above the mean length of all responses; 0 is off.
        longest_for_prompt: Largest length, in medians of the prompt's responses; 0 is off.
        always_fine: A response of this length or less is never too long.
        long_allowed: Categories without a largest length.
        chinese: Least share of Chinese among the letters outside code, formulas and URLs.
        kana: Largest share of kana among kana and Chinese characters.
        few_letters: Exempt responses with fewer letters.
        other_languages: Exempt categories (main or sub) that do not ask for Chinese, such as translation.
        asked_language: Exempt prompts that ask for another language or are written in one.
        asked_code: Exempt responses that are at least half code if the prompt asks for code.
        asked_options: Exempt responses that are the letter or the text of an option of a multiple-choice prompt.
        garbled: Largest share of characters from a wrong decoding, or that no text has.
        repeated: Largest share of windows of 20 characters that occurred earlier in the response.
        repeated_allowed: Categories in which responses may repeat themselves.
        refusals: Drop refusals.
        refusal_length: Look for refusals only in responses of this length or less.
        refusals_allowed: Categories in which refusals stay.
        least_responses: Drop prompts with fewer responses left.
    """

    longest: float = Field(3.0, ge=0, allow_inf_nan=False)
    longest_for_prompt: float = Field(4.0, ge=0, allow_inf_nan=False)
    always_fine: int = Field(200, ge=0)
    long_allowed: list[str] = Field(default_factory=list)
    chinese: float = Field(0.3, ge=0, le=1)
    kana: float = Field(0.2, ge=0, le=1)
    few_letters: int = Field(4, ge=0)
    other_languages: list[str] = Field(default_factory=list)
    asked_language: bool = True
    asked_code: bool = True
    asked_options: bool = True
    garbled: float = Field(0.01, ge=0, le=1)
    repeated: float = Field(0.5, ge=0, le=1)
    repeated_allowed: list[str] = Field(default_factory=list)
    refusals: bool = True
    refusal_length: int = Field(200, ge=1)
    refusals_allowed: list[str] = Field(default_factory=lambda: ["安全"])
    least_responses: int = Field(2, ge=2)


class Tasks(FrozenModel):
    """Assignment of tasks to annotators, and the rounds of tasks that several annotators marked.

    Attributes:
        several_of_a_prompt: Let an annotator have several tasks of a prompt with more tasks than annotators. If False,
            such a prompt is an error.
        least_agreement: Share of equal marks that two annotators of the same tasks have to reach before the rest is
            discussed (see `rounds`). The default is the paper's.
        review_share: Share of the marked tasks that the reviewer of each stage marks; one number is one stage. The
            default is the paper's.
    """

    overlap: float = Field(default=0.0, ge=0, le=1, description="Share of the tasks that two annotators get.")
    check_share: float = Field(default=0.05, ge=0, le=1, description="Hidden check items, as a share of the tasks.")
    several_of_a_prompt: bool = False
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    review_share: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.3, 0.3)

    @field_validator("review_share", mode="before")
    @classmethod
    def _one_stage(cls, value: object) -> object:
        return (value,) if isinstance(value, int | float) else value


class AnnotatedTable(FrozenModel):
    """Prompts with human annotations.

    Attributes:
        benchmarks: Prompts with one of these as `config` belong to that benchmark. All others are the human part, which
            trains the reward model and is the first part of the preference set.
        attribution: Credit on the card.
    """

    location: Location = Field(
        description="Annotated prompts, as `annotations` writes them, or `sample`.",
        json_schema_extra={"flag": "--annotated"},
    )
    name: str | None = SOURCE_NAME
    benchmarks: list[PathName] = Field(default_factory=lambda: ["open", "human"])
    license: str | None = LICENSE
    attribution: str | None = None


class UnlabeledTable(FrozenModel):
    """Prompts with responses: JSONL with `input`, `category`, `responses`, or `sample`; see `AnnotatedTable`."""

    extendable: ClassVar[frozenset[str]] = frozenset({"limit"})

    location: Location = Field(
        description="Prompts with responses that the judge votes on.", json_schema_extra={"flag": "--prompts"}
    )
    name: str | None = SOURCE_NAME
    taxonomy: Location = TAXONOMY
    limit: int | None = Field(None, ge=1, description="Maximum number of --prompts.")
    license: str | None = LICENSE
    attribution: str | None = None


class JudgeTable(ChatModel):
    """The judge model. The provider `recorded` has the votes of the sample.

    Attributes:
        attempts: Maximum number of calls for a vote that can be parsed.
        reply: Format of the reply. `marker`: such as [[A]] in the last line. `structured`: JSON with a schema that the
            server enforces, for small models.
    """

    attempts: int = Field(2, ge=1)
    reply: Literal["marker", "structured"] = "marker"


class RewardTable(FrozenModel):
    """The reward model that filters votes.

    Attributes:
        name: Name on the card. Default: the name of the folder.
        digest: Digest of the base model's files; the builder fills it in.
        training: Options of `pluralbench_local.TrainingConfig` for the human part.
        large: Options that differ for the large set, that of the judge's votes. The default is one epoch; the human
            part has two.
        least_pairs: Smallest number of pairs in the human part.
    """

    base: Location = Field(
        description="Folder of the base model, which is trained on the human part and filters the votes.",
        json_schema_extra={"flag": "--reward-base"},
    )
    name: str | None = None
    digest: str | None = None
    device: str = "auto"
    training: dict[str, Any] = Field(default_factory=dict)
    large: dict[str, Any] = Field(default_factory=lambda: {"epochs": 1})
    margin: float = Field(0.0, ge=0, description="Keep a vote only if the rewards differ by more.")
    least_pairs: int = Field(50, ge=1)

    @property
    def display_name(self) -> str:
        """Name on the card."""
        return self.name or PurePath(self.base).name

    def for_large_set(self) -> Self:
        """Return a copy with the training options for the large set."""
        return self.model_copy(update={"training": self.training | self.large})


class PreferenceTable(FrozenModel):
    """The strategies of the preference set, each of which can be switched off (CHEEMS, table 4)."""

    distant: bool = Field(
        True, description="Filter votes by the reward model.", json_schema_extra={"flag": "--distant/--no-distant"}
    )
    length: bool = Field(
        True,
        description="Balance pairs, so that the better response is as often longer as shorter.",
        json_schema_extra={"flag": "--length/--no-length"},
    )
    human: bool = Field(
        True, description="Put the human part into the set.", json_schema_extra={"flag": "--human/--no-human"}
    )


class ChineseRecipe(ReleaseRecipe):
    """Recipe of CheemsBench and CheemsPreference. Defaults are the paper's if it gives a value."""

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "audit"}

    name: ReleaseName = "chinese-rewardbench"
    prompts: PromptsTable | None = None
    writers: list[Writer] = Field(
        default_factory=list,
        description="A model that answers prompts: `local` or one of --base-url; repeatable.",
        json_schema_extra={"as_text": True, "flag": "--writer", "text_key": "model"},
    )
    annotators: list[str] = Field(
        default_factory=list, description="Name of an annotator; repeatable.", json_schema_extra={"flag": "--annotator"}
    )
    screening: Screening = Screening()
    tasks: Tasks = Tasks()
    annotated: AnnotatedTable | None = None
    unlabeled: UnlabeledTable | None = None
    judge: JudgeTable | None = Field(
        None,
        description="`recorded` (the sample's votes), `local`, or a model of --base-url.",
        json_schema_extra={"as_text": True, "metavar": "MODEL", "text_key": "model"},
    )
    reward: RewardTable | None = None
    preference: PreferenceTable = PreferenceTable()
    connection: ConnectionConfig = ConnectionConfig()
    audit: PairLimits = PairLimits()

    @model_validator(mode="after")
    def _consistent(self) -> "ChineseRecipe":
        if self.unlabeled is not None:
            if self.judge is None:
                raise ValueError("prompts without annotations need a judge: set `provider` and `model` under [judge]")
            if self.preference.distant and (self.reward is None or self.annotated is None):
                raise ValueError(
                    "distant supervision needs annotated prompts under [annotated] and a `base` under [reward]; "
                    "set `distant = false` under [preference] to build without it"
                )
        if self.judge is not None:
            check_connection(self.judge, self.connection, own=["recorded"])
        for writer in self.writers:
            own = {"base_url": writer.base_url} if writer.base_url is not None else {}
            check_connection(writer, self.connection.model_copy(update=own))
        return self
