"""What a build of CheemsBench and CheemsPreference can be asked to do."""

from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Literal, Self

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName
from pydantic import Field, field_validator, model_validator

RECIPES = Path(__file__).parent / "recipes"
SAMPLE = "sample"
TAXONOMY: Any = Field(SAMPLE, description="TOML with the categories of --prompts, or `sample`.")


class PromptsTable(FrozenModel):
    """Prompts that people are to rank responses to.

    responses: without it the writers are asked. assigned: JSONL with `task`, `annotator` and `responses`, where
    somebody else has given the tasks out.
    """

    location: Location = Field(
        description="JSONL with id, input, category and config, or `sample`.", json_schema_extra={"flag": "--prompts"}
    )
    responses: Location | None = Field(None, description="JSONL with prompt, id, content and model.")
    taxonomy: Location = TAXONOMY
    checks: Location | None = Field(None, description="JSONL with the task and the right marks of check items.")
    assigned: Location | None = None


class Writer(ChatModel):
    """A model that answers the prompts. base_url, api_key_env: its endpoint, in place of the connection's."""

    base_url: str | None = None
    api_key_env: str | None = None


class Screening(FrozenModel):
    """Thresholds of the rules.

    longest: in standard deviations above the mean length of all responses. longest_for_prompt: in medians of the
    prompt's responses. 0 turns either off. Lengths are in characters; one of `always_fine` or less is no outlier.
    chinese: least share of Chinese among the letters outside code, formulas and addresses. kana: largest share of kana
    among kana and Chinese characters. Neither holds for a response with fewer letters than `few_letters`, in
    `other_languages`, categories (main or sub) such as translation in which Chinese is not asked for, and where the
    prompt itself asks otherwise: with `asked_language` for another language, or in one; with `asked_code` for code,
    where half of the response is lines of it; with `asked_options` for one of several options, of which the response
    is the letter or the text.
    garbled: largest share of characters that some wrong decoding left, or that no text has.
    repeated: largest share of passages of 20 characters that stood in the response before.
    refusals: whether refusals go, looked for in responses of `refusal_length` characters or less, but for those in
    the categories of `refusals_allowed`.
    long_allowed, repeated_allowed: categories in which no response is too long, or repeats itself too much.
    least_responses: a prompt that is left with fewer goes.
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
    """How tasks are given to annotators, and what becomes of those that several annotators had.

    check_share: for each other task, where there are any check items. several_of_a_prompt: whether an annotator may get
    several tasks of a prompt where it has more tasks than there are annotators; without, that is an error.

    consensus: what enters the preference graph where several annotators marked a task. `discussion`, the paper's rule
    (appendix D): one mark on each pair; where they differ it is what they agree on when they discuss it, or the known
    answer of a check item, and until then the pair is left out. `none`: every annotator's mark, so that marks that
    differ make both responses equal. The pairs that two tasks of a prompt share are another matter: their conflicts are
    resolved in the graph (algorithm 1).

    least_agreement: how far two annotators of the same tasks are to agree, before they discuss what is left (see
    `rounds`). review_share: for each stage of review, the share of the marked tasks that a reviewer marks too; one
    number is one stage. Both are the paper's.
    """

    overlap: float = Field(default=0.0, ge=0, le=1, description="Share of the tasks that a second annotator gets too.")
    check_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="How many check items are hidden among the tasks, as a share.",
    )
    several_of_a_prompt: bool = False
    consensus: Literal["discussion", "none"] = "discussion"
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    review_share: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.3, 0.3)

    @field_validator("review_share", mode="before")
    @classmethod
    def _one_stage(cls, value: object) -> object:
        return (value,) if isinstance(value, int | float) else value


class AnnotatedTable(FrozenModel):
    """Prompts with people's annotations.

    A prompt whose `config` is `open`, `human` or another of `benchmarks` is of that benchmark, any other is of the
    human part that the reward model learns from and that the preference set begins with.
    attribution: whom the card thanks.
    """

    location: Location = Field(
        description="Prompts that people annotated, as `annotations` writes them, or `sample`.",
        json_schema_extra={"flag": "--annotated"},
    )
    name: str | None = SOURCE_NAME
    benchmarks: list[PathName] = Field(default_factory=lambda: ["open", "human"])
    license: str | None = LICENSE
    attribution: str | None = None


class UnlabeledTable(FrozenModel):
    """Prompts with responses: JSONL with `input`, `category`, `responses`, or `sample`; see `AnnotatedTable`."""

    location: Location = Field(
        description="Prompts with responses that the judge votes on.", json_schema_extra={"flag": "--prompts"}
    )
    name: str | None = SOURCE_NAME
    taxonomy: Location = TAXONOMY
    limit: int | None = Field(None, ge=1, description="At most so many of --prompts.")
    license: str | None = LICENSE
    attribution: str | None = None


class JudgeTable(ChatModel):
    """The judge model. provider `recorded` has the sample's own votes. attempts: until a vote can be read.

    reply: a `marker` such as [[A]] in the last line, or `structured`, JSON by a schema that the server enforces, which
    small models need.
    """

    attempts: int = Field(2, ge=1)
    reply: Literal["marker", "structured"] = "marker"


class RewardTable(FrozenModel):
    """The reward model that filters votes.

    name: what to call it. digest: of its files; the builder fills it in. training: options of
    `pluralbench_local.TrainingConfig` for the human part. large: what of them is otherwise for the large set, that of
    the judge's votes; by default one epoch, where the human part has two. least_pairs: a human part with fewer is too
    small.
    """

    base: Location = Field(
        description="Folder of the model that is trained on the human part and filters the votes.",
        json_schema_extra={"flag": "--reward-base"},
    )
    name: str | None = None
    digest: str | None = None
    device: str = "auto"
    training: dict[str, Any] = Field(default_factory=dict)
    large: dict[str, Any] = Field(default_factory=lambda: {"epochs": 1})
    margin: float = Field(0.0, ge=0, description="A vote stays if rewards differ by more.")
    least_pairs: int = Field(50, ge=1)

    @property
    def shown(self) -> str:
        """What to call it."""
        return self.name or PurePath(self.base).name

    def on_large_set(self) -> Self:
        """The table as the large set is trained on."""
        return self.model_copy(update={"training": self.training | self.large})


class PreferenceTable(FrozenModel):
    """The strategies of the preference set, each of which can be switched off (CHEEMS, table 4)."""

    distant: bool = Field(
        True, description="Filter votes by the reward model.", json_schema_extra={"flag": "--distant/--no-distant"}
    )
    length: bool = Field(
        True,
        description="Balance pairs by whether the better response is longer.",
        json_schema_extra={"flag": "--length/--no-length"},
    )
    human: bool = Field(
        True, description="Put the human part into the set.", json_schema_extra={"flag": "--human/--no-human"}
    )


class ChineseRecipe(ReleaseRecipe):
    """A build of CheemsBench and CheemsPreference. Defaults are the paper's where it gives a value.

    audit: limits that the pairs of every part have to keep, their lengths in characters.
    """

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "audit"}

    name: ReleaseName = "chinese-rewardbench"
    prompts: PromptsTable | None = None
    writers: list[Writer] = Field(
        default_factory=list,
        description="A model that answers prompts: `local` or one of --base-url; repeatable.",
        json_schema_extra={"as_text": True, "flag": "--writer", "text_key": "model"},
    )
    annotators: list[str] = Field(
        default_factory=list, description="Who annotates; repeatable.", json_schema_extra={"flag": "--annotator"}
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
                raise ValueError("prompts without annotations need a judge: `provider` and `model` under [judge]")
            if self.preference.distant and (self.reward is None or self.annotated is None):
                raise ValueError(
                    "distant supervision needs annotated prompts under [annotated] and a `base` under [reward]; "
                    "`distant = false` under [preference] goes without"
                )
        if self.judge is not None:
            check_connection(self.judge, self.connection, own=["recorded"])
        for writer in self.writers:
            own = {"base_url": writer.base_url} if writer.base_url is not None else {}
            check_connection(writer, self.connection.model_copy(update=own))
        return self
