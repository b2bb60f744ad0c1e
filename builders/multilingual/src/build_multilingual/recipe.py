"""What a build of M-RewardBench can be asked to do."""

import pkgutil
import re
from pathlib import Path
from typing import Any, ClassVar, Literal

from pluralbench_calls import ConnectionConfig, Limits, Price
from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location
from pluralbench_runs.options import COLUMNS as COLUMN_NAMES
from pluralbench_schemas import ENGLISH, LANGUAGES, similar_languages
from pluralbench_tables import Quoting, Separator
from pydantic import Field, field_validator, model_validator

RECIPES = Path(__file__).parent / "recipes"
COLUMNS = ("id", "prompt", "chosen", "rejected", "chosen_model", "rejected_model", "subset", "category")
ROLES = ("source", "translation", "system", "direction", "candidates")
CODE = r"([a-z]{2,3})(?:_[a-z]{4})?"
DIRECTION = re.compile(rf"{CODE}\s*(?:->|[-_>→])\s*{CODE}")

CATEGORIES = {
    "Chat": ["alpacaeval-easy", "alpacaeval-length", "alpacaeval-hard", "mt-bench-easy", "mt-bench-med"],
    "Chat Hard": ["mt-bench-hard", "llmbar-natural", "llmbar-adver-*"],
    "Safety": [
        "refusals-dangerous",
        "refusals-offensive",
        "xstest-should-refuse",
        "xstest-should-respond",
        "donotanswer",
    ],
    "Reasoning": ["math-prm", "hep-*"],
}


def known_translators() -> list[str]:
    """The names of the modules in `build_multilingual.translators`, each of which is a translator; none is imported."""
    folder = Path(__file__).parent / "translators"
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_"))


class SourceTable(FrozenModel):
    """The English pairs.

    columns: other names of the columns `id`, `prompt`, `chosen`, `rejected`, `chosen_model`, `rejected_model`,
    `subset`, `category`; the last four may be missing, and `id` too.
    categories: which subsets (shell patterns) belong to which category, where the source has no such column.
    prompt_only: subsets (shell patterns) whose answers are code, so that only the prompt is translated.
    separator, quoting: see `pluralbench_tables.Dialect`.
    """

    location: Location = Field(
        description="English pairs: `sample`, a directory or file, or `ORG/NAME@REVISION`.",
        json_schema_extra={"flag": "--source"},
    )
    split: str = Field(
        "filtered",
        description="Split of --source; RewardBench's is `filtered`.",
        json_schema_extra={"flag": "--source-split"},
    )
    limit: int | None = Field(None, ge=1, description="At most so many rows of each subset.")
    columns: dict[str, str] = COLUMN_NAMES
    categories: dict[str, list[str]] = Field(default_factory=lambda: dict(CATEGORIES))
    prompt_only: list[str] = Field(default_factory=lambda: ["hep-*"])
    separator: Separator | None = Field(
        None, description="What separates the cells of a CSV given by --source or --rated."
    )
    quoting: Quoting | None = Field(
        None,
        description="How such a CSV writes a quotation mark; MQM's and MLQE-PE's files never quote: none.",
    )
    name: str | None = SOURCE_NAME
    license: str | None = LICENSE
    attribution: str | None = None

    @field_validator("columns")
    @classmethod
    def _known(cls, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in COLUMNS:
                raise ValueError(f"there is no column `{name}` to rename; the columns are {', '.join(COLUMNS)}")
        return columns


class TranslatorTable(FrozenModel):
    """Who translates. name: a module of `build_multilingual.translators`, or NAME:MODEL. model: one of its models.

    glossary: projects/.../locations/.../glossaries/...
    """

    name: str = Field(
        description=f"{', '.join(known_translators())}.",
        json_schema_extra={"flag": "--translator", "metavar": "NAME[:MODEL]"},
    )
    model: Location | None = None
    glossary: str | None = Field(None, description="Full resource name of a Google glossary.")

    @model_validator(mode="before")
    @classmethod
    def _in_one(cls, values: Any) -> Any:
        name, colon, model = str(values.get("name")).partition(":") if isinstance(values, dict) else ("", "", "")
        return values | {"name": name, "model": model} if colon else values


class ConnectionTable(FrozenModel):
    """How to reach the translator, how fast to ask and what to spend. A build may go on under other values.

    endpoint: such as `translate-eu.googleapis.com`. retry_seconds: how long a message is sent again that the server
    could not take.
    """

    project: str | None = Field(None, description="Google Cloud project that is billed.")
    location: str = Field("global", description="Google Cloud location; glossaries want theirs.")
    endpoint: str | None = Field(
        None, description="Another Google host, or http://127.0.0.1:PORT for a server on this machine."
    )
    retry_seconds: float = Field(600.0, gt=0)
    concurrency: int = Field(4, ge=1)
    requests_per_minute: float | None = Field(None, gt=0)
    characters_per_minute: float | None = Field(None, gt=0)
    price: float = Field(
        0.0,
        ge=0,
        description="US dollars for a million characters, such as 20.",
        json_schema_extra={"metavar": "DOLLARS"},
    )
    max_cost: float | None = Field(None, ge=0, description=ConnectionConfig.model_fields["max_cost"].description)

    def limits(self) -> Limits:
        """The limits of every step of the build. What a translator bills by is characters, one for a token here."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=None if self.characters_per_minute is None else self.characters_per_minute / 4,
            price=Price(input=self.price),
            max_cost=self.max_cost,
        )


class ChecksTable(FrozenModel):
    """When a translation is set aside.

    shortest, longest: its length against that of the English text, after what is usual for the language.
    least_characters: fewer than this, blanks apart, are too few to tell the length by.
    least_characters_langid: the same for the language; a third of it for scripts without an alphabet.
    least_confidence: of the identifier in another language. Lists of names are of no language, and it says so: on
    PandaLM's texts in four languages, all false alarms were below 0.45 and texts in another language above 0.98.
    """

    shortest: float = Field(0.4, gt=0)
    longest: float = Field(2.5, gt=0)
    least_characters: int = Field(30, ge=1)
    least_characters_langid: int = Field(40, ge=1)
    least_confidence: float = Field(0.8, ge=0, le=1)


class FilterTable(FrozenModel):
    """What happens to a row that has no good translation in some language.

    drop: out of all languages ("everywhere", as in the paper), or out of that one.
    decisions_digest: of the human decisions that were followed; the builder fills it in.
    """

    drop: Literal["everywhere", "language"] = Field(
        "everywhere", description="Where a row goes that has no good translation in a language."
    )
    decisions_digest: str | None = None


class ReviewTable(FrozenModel):
    """Human decisions.

    preferred: where what reviewers preferred is recorded, beside the `better` of these sheets. judged: see
    `preferred.read_preferred`.
    """

    decisions: list[Location] = Field(
        default_factory=list, description="CSV with id, language, decision (drop or keep), reason; repeatable."
    )
    preferred: list[Location] = Field(default_factory=list)
    judged: Location | None = Field(
        None,
        description="What a judge preferred, to compare reviewers with: items.parquet of its run, or a table.",
        json_schema_extra={"flag": "--review-judge"},
    )


class Scale(FrozenModel):
    """What a score means: which end is the better, and the least differences of an easy and of a hard pair."""

    better: Literal["higher", "lower"]
    easy: float = Field(gt=0, allow_inf_nan=False)
    hard: float = Field(gt=0, allow_inf_nan=False)


class RatedTable(FrozenModel):
    """Where rated translations are, and what a file does not say about itself.

    location: a path or a Hub dataset (see `pluralbench_release.read_tables`).
    score: unset, the first of `SCALES` that is there. scale: for scores that are not in `SCALES`, and to set other
    least differences.
    columns: other names for `source`, `translation`, `system`, `direction` and `candidates`.
    separator, quoting: of CSV and TSV, see `pluralbench_tables.Dialect`; MQM's and MLQE-PE's files never quote.
    name, license, attribution: for the card; the license is for sources that state none.
    """

    location: Location
    split: str = "train"
    direction: str | None = Field(None, description="Such as zh-en, where --rated does not say.")
    score: str | None = Field(None, description="Column of the score in --rated.")
    scale: Scale | None = Field(
        None,
        description="higher or lower is better, and the least differences of easy and hard pairs: higher/0.25/0.5.",
        json_schema_extra={"metavar": "BETTER/EASY/HARD"},
    )
    columns: dict[str, str] = COLUMN_NAMES
    separator: Separator | None = Field(None, json_schema_extra={"flag": "--separator"})
    quoting: Quoting | None = Field(None, json_schema_extra={"flag": "--quoting"})
    name: str | None = None
    license: str | None = None
    attribution: str | None = None

    @field_validator("scale", mode="before")
    @classmethod
    def _in_one(cls, scale: object) -> object:
        if not isinstance(scale, str):
            return scale
        better, *differences = scale.split("/")
        if better not in {"higher", "lower"} or len(differences) != 2:
            raise ValueError(f"{scale!r} is not of the form BETTER/EASY/HARD, such as higher/0.25/0.5")
        return {"better": better, "easy": differences[0], "hard": differences[1]}

    @field_validator("columns")
    @classmethod
    def _known(cls, columns: dict[str, str]) -> dict[str, str]:
        for role in columns:
            if role not in ROLES:
                raise ValueError(f"there is no column {role!r} to name; name {', '.join(ROLES)}")
        return columns

    @field_validator("direction")
    @classmethod
    def _direction(cls, direction: str | None) -> str | None:
        if direction is not None and direction_of(direction) is None:
            raise ValueError(f"{direction!r} is no direction such as `zh-en`")
        return direction


class TranslationTable(FrozenModel):
    """The config `translation`."""

    rated: list[RatedTable] = Field(
        default_factory=list,
        description="Rated translations for the config `translation`.",
        json_schema_extra={"flag": "--rated", "text_key": "location", "panel": "Rated translations"},
    )
    per_level: int = Field(100, ge=1, description="Pairs of each direction and level.")


class MultilingualRecipe(ReleaseRecipe):
    """A build of M-RewardBench. Defaults are the paper's where it gives a value.

    audit: limits that the pairs of every config have to keep, their lengths in characters.
    """

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "review", "audit"}

    name: ReleaseName = "multilingual-rewardbench"
    languages: list[str] = Field(
        default_factory=list,
        description="FLORES-200 code, such as spa_Latn; repeatable.",
        json_schema_extra={"flag": "--language"},
    )
    english: bool = Field(
        False,
        description="Add the source itself as config eng_Latn, which the original leaves out.",
        json_schema_extra={"flag": "--add-english/--no-add-english"},
    )
    source: SourceTable | None = None
    translator: TranslatorTable | None = None
    connection: ConnectionTable = ConnectionTable()
    checks: ChecksTable = ChecksTable()
    filter: FilterTable = FilterTable()
    review: ReviewTable = ReviewTable()
    translation: TranslationTable = Field(TranslationTable(), json_schema_extra={"panel": "Rated translations"})
    audit: PairLimits = PairLimits()

    @field_validator("languages")
    @classmethod
    def _languages(cls, codes: list[str]) -> list[str]:
        for code in codes:
            if code not in LANGUAGES:
                near = [known for known in similar_languages(code) if known != ENGLISH]
                hint = f"did you mean {' or '.join(near)}" if near else "the languages are those of `languages.toml`"
                raise ValueError(f"there is no language {code!r}; {hint}")
            if code == ENGLISH:
                raise ValueError(f"{ENGLISH} is not translated into; `english = true` adds the source itself")
        twice = next((code for code in codes if codes.count(code) > 1), None)
        if twice:
            raise ValueError(f"the language {twice} is given twice")
        return codes

    @model_validator(mode="after")
    def _consistent(self) -> "MultilingualRecipe":
        if self.languages and (self.source is None or self.translator is None):
            raise ValueError("languages need a `location` under [source] and a `name` under [translator]")
        if self.english and self.source is None:
            raise ValueError("`english = true` needs a `location` under [source]")
        if not self.languages and not self.translation.rated:
            raise ValueError("nothing is asked for: name `languages`, or rated translations under [translation]")
        if self.connection.max_cost is not None and not self.connection.price:
            raise ValueError("a `max_cost` needs a `price` under [connection] (or --price) to be reckoned by")
        return self


def direction_of(value: str) -> str | None:
    """`zh-en` for `zh-en`, `zh_en`, `zh>en` and `ZH→EN`; `eng-deu` for `eng_Latn-deu_Latn`; None for anything else."""
    match = DIRECTION.fullmatch(value.strip().lower())
    return f"{match[1]}-{match[2]}" if match else None
