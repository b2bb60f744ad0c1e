"""What a build of personalized preferences can be asked to do."""

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import LICENCE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName
from pluralbench_runs.options import COLUMNS as COLUMN_NAMES
from pydantic import Field, PlainSerializer, field_validator, model_validator

from build_personalized.recipe import public_source

RECIPES = Path(__file__).parent / "recipes"
COLUMNS = ("user", "prompt", "chosen", "rejected", "id", "conversation", "order", "split")
NOBODY, WRITTEN = "none", "hand-written"
OF_AGAINST = "a benchmark of --against"


class TrainingSource(FrozenModel):
    """Where people and what they preferred come from.

    columns: of a table, other names of `user`, `prompt`, `chosen`, `rejected` and, where it has them, `id`,
    `conversation` (what the pairs of one conversation share), `order` (by which a user's pairs are put in their order
    in time; without it, the order of the rows) and `split`.
    name, attribution: what the card calls a source, and whom it thanks; of a single location. language: of the texts,
    a BCP 47 code. config_names: other names for configs.
    """

    locations: list[Annotated[str, PlainSerializer(public_source, when_used="json")]] = Field(
        min_length=1,
        description="`sample`, `arena`, `prism` (these two also with `:DIRECTORY` or `:ORG/NAME@REVISION`), "
        "`table:FILE_OR_DIR` or `stack-exchange:POSTS_XML`; repeatable.",
        json_schema_extra={"flag": "--source"},
    )
    columns: dict[str, str] = COLUMN_NAMES
    limit: int | None = Field(
        None, ge=1, description="At most so many users of each config, in the order of the source."
    )
    name: str | None = SOURCE_NAME
    attribution: str | None = Field(None, min_length=1)
    licence: str | None = LICENCE
    language: str = Field("en", pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")
    config_names: dict[str, PathName] = Field(default_factory=dict)

    @field_validator("columns")
    @classmethod
    def _known(cls, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in COLUMNS:
                raise ValueError(f"there is no column `{name}` to rename; the columns are {', '.join(COLUMNS)}")
        return columns

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if len(self.locations) > 1 and (self.name is not None or self.attribution is not None):
            raise ValueError(
                "`name` and `attribution` are of one source, and `locations` has several; build them apart"
            )
        if self.columns and not any(location.startswith("table:") for location in self.locations):
            raise ValueError("`columns` are those of a `table:`, and there is none among `locations`")
        return self


class PersonaTable(ChatModel):
    """The model that sums up each user, and what it is shown.

    provider: `none` (no personas), `hand-written` (the sample's own), `local` (the embedded model) or the host of an
    OpenAI-compatible endpoint. questions: it is shown at most so many of the newest questions of a user, of each the
    first question_words words. word_limit: of a persona. attempts: how often a persona may be asked for until it is
    valid; a user without one is left out and counted.
    """

    provider: str = NOBODY
    model: str = NOBODY
    questions: int = Field(30, ge=1)
    question_words: int = Field(100, ge=1)
    word_limit: int = Field(120, ge=1)
    attempts: int = Field(5, ge=1)


class SplitsTable(FrozenModel):
    """How users are divided among the splits.

    train, validation, test: the share of the users of each config; where it is above 0, at least one user.
    """

    train: float = Field(0.8, gt=0, le=1)
    validation: float = Field(0.1, ge=0, lt=1)
    test: float = Field(0.1, ge=0, lt=1)
    own: bool = Field(
        False,
        description="Take the splits of the source, which must keep users apart.",
        json_schema_extra={"flag": "--own-splits"},
    )

    @model_validator(mode="before")
    @classmethod
    def _in_one(cls, values: object) -> object:
        """Shares as the command line gives them, `shares = "0.8/0.1/0.1"`."""
        if not isinstance(values, dict) or "shares" not in values:
            return values
        shares = values["shares"]
        try:
            train, validation, test = (float(part) for part in str(shares).split("/"))
        except ValueError:
            raise ValueError(f"{shares!r} is not of the form TRAIN/VALIDATION/TEST, such as 0.8/0.1/0.1") from None
        others = {name: value for name, value in values.items() if name != "shares"}
        return others | {"train": train, "validation": validation, "test": test}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if abs(sum(self.shares.values()) - 1) > 1e-6:
            said = "/".join(f"{share:g}" for share in self.shares.values())
            raise ValueError(f"the shares of the splits are {said}, and have to add up to 1")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The share of each split."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


class TrainingRecipe(ReleaseRecipe):
    """A build of personalized preferences.

    min_posts: what is left out is counted; 0 keeps users with a single question, whose profile is empty. max_posts: of
    a user's other questions, keep so many of the newest. against: `sample` is that of Personalized RewardBench.
    """

    operational: ClassVar[frozenset[str]] = ReleaseRecipe.operational | {"connection", "audit"}

    name: ReleaseName = "personalized-training"
    min_posts: int = Field(
        1, ge=0, description="Leave out pairs of users with fewer other questions; 0 keeps them all."
    )
    max_posts: int | None = Field(None, ge=1)
    against: list[Location] = Field(
        default_factory=list,
        description="A benchmark whose questions must not be learned from: a release, a table, `ORG/NAME@REVISION`, "
        "`sample`, or `none`; repeatable.",
    )
    source: TrainingSource
    splits: SplitsTable = Field(
        SplitsTable(),
        description="Shares of the users, such as 0.8/0.1/0.1.",
        json_schema_extra={"flag": "--shares", "metavar": "TRAIN/VALIDATION/TEST", "text_key": "shares"},
    )
    persona: PersonaTable = Field(
        PersonaTable(),
        description="Who sums up each user: `none`, `hand-written` (the sample's), `local` (the embedded model), or a "
        "model of --base-url.",
        json_schema_extra={"as_text": True, "flag": "--persona-llm", "metavar": "MODEL", "text_key": "model"},
    )
    connection: ConnectionConfig = ConnectionConfig()
    audit: PairLimits = PairLimits()

    @field_validator("against")
    @classmethod
    def _none(cls, against: list[str]) -> list[str]:
        if NOBODY in against and len(against) > 1:
            raise ValueError(f"{NOBODY} compares with no benchmark, so it cannot stand beside another")
        return [] if NOBODY in against else against

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_connection(self.persona, self.connection, own=[NOBODY, WRITTEN])
        return self
