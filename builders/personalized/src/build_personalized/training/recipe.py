"""Recipe of a build of personalized preferences."""

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pluralbench_calls import ChatModel, ConnectionConfig, check_connection
from pluralbench_release import PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location
from pluralbench_runs.recipe_options import COLUMNS as COLUMN_NAMES
from pluralbench_runs.recipe_options import column_names
from pydantic import Field, field_validator, model_validator

from build_personalized.recipe import Locations, UserSource

RECIPES = Path(__file__).parent / "recipes"
COLUMNS = ("user", "prompt", "chosen", "rejected", "id", "conversation", "order", "split")
NO_MODEL, HAND_WRITTEN = "none", "hand-written"
AGAINST_HINT = "check `against=...`"


class TrainingSource(UserSource):
    """Source of the users and their preferences.

    Attributes:
        columns: Names of a table's columns for `user`, `prompt`, `chosen`, `rejected` and, if the table has them, `id`,
            `conversation` (shared by the pairs of one conversation), `order` (sorts a user's pairs by time; default:
            the order of the rows) and `split`.
    """

    locations: Locations = Field(
        min_length=1,
        description="`sample`, `arena`, `prism` (these two also with `:DIRECTORY` or `:ORG/NAME@REVISION`), "
        "`table:FILE_OR_DIR` or `stack-exchange:POSTS_XML`; repeatable.",
        json_schema_extra={"flag": "--source"},
    )
    columns: Annotated[dict[str, str], column_names(COLUMNS)] = COLUMN_NAMES
    limit: int | None = Field(None, ge=1, description="Maximum number of users per config, in the order of the source.")

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        if self.columns and not any(location.startswith("table:") for location in self.locations):
            raise ValueError("`columns` describes a `table:` source, but `locations` has none")
        return self


class PersonaTable(ChatModel):
    """Model that writes the personas, and its input.

    Attributes:
        provider: `none` (no personas), `hand-written` (the sample's own), `local` (the embedded model) or the host of
            an OpenAI-compatible endpoint.
        questions: Maximum number of a user's questions in the prompt, newest first.
        question_words: Maximum words of each question in the prompt.
        word_limit: Maximum words of a persona.
        attempts: Maximum calls until a persona is valid. Users without one are dropped and counted.
    """

    provider: str = NO_MODEL
    model: str = NO_MODEL
    questions: int = Field(30, ge=1)
    question_words: int = Field(100, ge=1)
    word_limit: int = Field(120, ge=1)
    attempts: int = Field(5, ge=1)


class SplitsTable(FrozenModel):
    """Shares of each config's users by split. A split with a share above 0 gets at least one user of each config."""

    train: float = Field(0.8, gt=0, le=1)
    validation: float = Field(0.1, ge=0, lt=1)
    test: float = Field(0.1, ge=0, lt=1)
    own: bool = Field(
        False,
        description="Use the source's splits, in which each user must be in one split only.",
        json_schema_extra={"flag": "--own-splits"},
    )

    @model_validator(mode="before")
    @classmethod
    def _parse_shares(cls, values: object) -> object:
        """Accept the form of the command line, `shares = "0.8/0.1/0.1"`."""
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
    def _sum_to_one(self) -> Self:
        if abs(sum(self.shares.values()) - 1) > 1e-6:
            shares = "/".join(f"{share:g}" for share in self.shares.values())
            raise ValueError(f"the shares of the splits are {shares}, but must add up to 1")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """Share of each split."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


class TrainingRecipe(ReleaseRecipe):
    """Recipe of a build of personalized preferences.

    Attributes:
        min_posts: Minimum number of posts in a profile; pairs with fewer are dropped and counted. 0 keeps users with a
            single question, whose profile is empty.
        max_posts: Maximum number of posts in a profile, newest first. Default: all.
        against: Benchmarks whose questions are removed; `sample` is the sample of Personalized RewardBench.
    """

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "audit"}

    name: ReleaseName = "personalized-training"
    min_posts: int = Field(1, ge=0, description="Drop pairs of users with fewer other questions; 0 keeps all.")
    max_posts: int | None = Field(None, ge=1)
    against: list[Location] = Field(
        default_factory=list,
        description="Benchmark whose questions are removed from the data: a release, a table, `ORG/NAME@REVISION`, "
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
        description="Model that writes the personas: `none`, `hand-written` (the sample's), `local` (the embedded "
        "model), or a model served at --base-url.",
        json_schema_extra={"as_text": True, "flag": "--persona-llm", "metavar": "MODEL", "text_key": "model"},
    )
    connection: ConnectionConfig = ConnectionConfig()
    audit: PairLimits = PairLimits()

    @field_validator("against")
    @classmethod
    def _none(cls, against: list[str]) -> list[str]:
        if NO_MODEL in against and len(against) > 1:
            raise ValueError(f"`{NO_MODEL}` compares with no benchmark, so it cannot be combined with others")
        return [] if NO_MODEL in against else against

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_connection(self.persona, self.connection, own=[NO_MODEL, HAND_WRITTEN])
        return self
