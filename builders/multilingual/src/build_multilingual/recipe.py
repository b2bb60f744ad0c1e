"""Recipe of a build of M-RewardBench."""

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pluralbench_calls import ConnectionConfig, Limits, Price
from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location
from pluralbench_runs.recipe_options import COLUMNS as COLUMN_NAMES
from pluralbench_runs.recipe_options import column_names
from pluralbench_schemas import ENGLISH, LANGUAGES, similar_languages
from pluralbench_tables import Quoting, Separator
from pydantic import Field, field_validator, model_validator

RECIPES = Path(__file__).parent / "recipes"
COLUMNS = ("id", "prompt", "chosen", "rejected", "chosen_model", "rejected_model", "subset", "category")
ROLES = ("source", "translation", "system", "direction", "candidates")
CODE = r"([a-z]{2,3})(?:_[a-z]{4})?"
DIRECTION = re.compile(rf"{CODE}\s*(?:->|[-_>→])\s*{CODE}")
# Texts are sent without encryption only to this machine.
ENDPOINT = re.compile(r"(?:http://(?:127\.0\.0\.1|localhost|\[::1\])|[\w.-]+)(?::[0-9]{1,5})?")

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


TRANSLATORS = {"apertium": "apertium:Apertium", "google": "google:GoogleTranslator", "nllb": "nllb:Nllb"}
"""Class of each translator, in its module of `build_multilingual.translators`."""


class SourceTable(FrozenModel):
    """Source of the English pairs.

    Attributes:
        columns: Names of the source's columns for `id`, `prompt`, `chosen`, `rejected`, `chosen_model`,
            `rejected_model`, `subset` and `category`; `id` and the last four are optional.
        categories: Subsets (shell patterns) of each category, for a source without such a column.
        prompt_only: Subsets (shell patterns) whose answers are code, so that only the prompt is translated.
        attribution: Attribution on the card.
    """

    extendable: ClassVar[frozenset[str]] = frozenset({"limit"})

    location: Location = Field(
        description="English pairs: `sample`, a directory or file, or `ORG/NAME@REVISION`.",
        json_schema_extra={"flag": "--source"},
    )
    split: str = Field(
        "filtered",
        description="Split of --source; `filtered` for RewardBench.",
        json_schema_extra={"flag": "--source-split"},
    )
    limit: int | None = Field(None, ge=1, description="Maximum number of rows per subset.")
    columns: Annotated[dict[str, str], column_names(COLUMNS)] = COLUMN_NAMES
    categories: dict[str, list[str]] = Field(default_factory=lambda: dict(CATEGORIES))
    prompt_only: list[str] = Field(default_factory=lambda: ["hep-*"])
    separator: Separator | None = Field(None, description="Separator of CSV and TSV files. Default: the header's.")
    quoting: Quoting | None = Field(
        None,
        description="Quotation marks in quoted cells of CSV and TSV: doubled (default) or after a backslash; none: "
        "files that never quote, such as MQM's and MLQE-PE's.",
    )
    name: str | None = SOURCE_NAME
    license: str | None = LICENSE
    attribution: str | None = None


class TranslatorTable(FrozenModel):
    """Translator.

    Attributes:
        name: A key of `TRANSLATORS`, or NAME:MODEL.
        model: Model of the translator. Default: the translator's own default.
        glossary: Google glossary, projects/.../locations/.../glossaries/...
    """

    name: str = Field(
        description=f"Translator: {', '.join(TRANSLATORS)}.",
        json_schema_extra={"flag": "--translator", "metavar": "NAME[:MODEL]"},
    )
    model: Location | None = None
    glossary: str | None = Field(None, description="Full resource name of a Google glossary.")

    @model_validator(mode="before")
    @classmethod
    def _parse_name(cls, values: Any) -> Any:
        name, colon, model = str(values.get("name")).partition(":") if isinstance(values, dict) else ("", "", "")
        return values | {"name": name, "model": model} if colon else values


class ConnectionTable(FrozenModel):
    """Connection to the translator, rate limits and cost. A resumed build may change these values.

    Attributes:
        endpoint: Host such as `translate-eu.googleapis.com`.
        retry_seconds: Time in seconds for repeating a message that the server could not process.
        concurrency: Maximum number of messages in flight.
        requests_per_minute: Maximum messages per minute.
        characters_per_minute: Maximum characters per minute.
    """

    project: str | None = Field(None, description="Google Cloud project to bill.")
    location: str = Field("global", description="Google Cloud location; a glossary needs its own.")
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
        description="US dollars per million characters, such as 20.",
        json_schema_extra={"metavar": "DOLLARS"},
    )
    max_cost: float | None = Field(None, ge=0, description=ConnectionConfig.model_fields["max_cost"].description)

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, endpoint: str | None) -> str | None:
        if endpoint and ENDPOINT.fullmatch(endpoint) is None:  # the message does not repeat what may be a secret
            raise ValueError("it is neither a host such as translate-eu.googleapis.com nor http://127.0.0.1:PORT")
        return endpoint

    def limits(self) -> Limits:
        """Return the limits of the calls. Translators bill characters; each counts as a token here."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=None if self.characters_per_minute is None else self.characters_per_minute / 4,
            price=Price(input=self.price),
            max_cost=self.max_cost,
        )


class ChecksTable(FrozenModel):
    """Limits beyond which a translation fails a check.

    Attributes:
        shortest: Minimum length relative to the English text, divided by the language's expected ratio.
        longest: Maximum length, in the same unit.
        least_characters: Minimum characters, without white space, for checking the length.
        least_characters_langid: Minimum characters for checking the language; a third of it for scripts without an
            alphabet.
        least_confidence: Minimum confidence of the language identifier in another language. On PandaLM's texts in four
            languages, all false alarms (such as lists of names) were below 0.45 and texts in another language above
            0.98.
    """

    shortest: float = Field(0.4, gt=0)
    longest: float = Field(2.5, gt=0)
    least_characters: int = Field(30, ge=1)
    least_characters_langid: int = Field(40, ge=1)
    least_confidence: float = Field(0.8, ge=0, le=1)


class FilterTable(FrozenModel):
    """Filter for rows without a good translation in some language. The builder fills in `decisions_digest`."""

    extendable: ClassVar[frozenset[str]] = frozenset({"decisions_digest"})

    drop: Literal["everywhere", "language"] = Field(
        "everywhere", description="Where to drop a row without a good translation in one language."
    )
    decisions_digest: str | None = None


class ReviewTable(FrozenModel):
    """Human decisions and preferences. `preferred`: tables of recorded ones, besides the review sheets."""

    decisions: list[Location] = Field(
        default_factory=list, description="CSV with id, language, decision (drop or keep), reason; repeatable."
    )
    preferred: list[Location] = Field(default_factory=list)
    judged: Location | None = Field(
        None,
        description="A judge's preferences to compare reviewers with: items.parquet of its run, or a table.",
        json_schema_extra={"flag": "--review-judge"},
    )


class Scale(FrozenModel):
    """Scale of a score: its better end, and the minimum differences of an easy and of a hard pair."""

    better: Literal["higher", "lower"]
    easy: float = Field(gt=0, allow_inf_nan=False)
    hard: float = Field(gt=0, allow_inf_nan=False)


class RatedTable(FrozenModel):
    """Rated translations, and facts that their file does not state.

    Attributes:
        location: Path or Hub dataset (see `pluralbench_release.read_tables`).
        split: Split to read.
        score: Column of the score. Default: the first of `SCALES` in the file.
        scale: Scale of the score, for scores that are not in `SCALES` or other differences.
        columns: Names of the columns for `source`, `translation`, `system`, `direction` and `candidates`.
        separator: Separator of CSV and TSV files, see `pluralbench_tables.Dialect`.
        quoting: Quoting of CSV and TSV files; `none` for the files of MQM and MLQE-PE.
        name: Name of the source on the card.
        license: License of a source that states none.
        attribution: Attribution on the card.
    """

    location: Location
    split: str = "train"
    direction: str | None = Field(
        None, description="Direction of translation such as zh-en, if --rated has no such column."
    )
    score: str | None = Field(None, description="Column of the score in --rated.")
    scale: Scale | None = Field(
        None,
        description="Better end of the score, and minimum differences of easy and hard pairs, such as higher/0.25/0.5.",
        json_schema_extra={"metavar": "BETTER/EASY/HARD"},
    )
    columns: Annotated[dict[str, str], column_names(ROLES)] = COLUMN_NAMES
    separator: Separator | None = Field(None, json_schema_extra={"flag": "--separator"})
    quoting: Quoting | None = Field(None, json_schema_extra={"flag": "--quoting"})
    name: str | None = None
    license: str | None = None
    attribution: str | None = None

    @field_validator("scale", mode="before")
    @classmethod
    def _parse_scale(cls, scale: object) -> object:
        if not isinstance(scale, str):
            return scale
        better, *differences = scale.split("/")
        if better not in {"higher", "lower"} or len(differences) != 2:
            raise ValueError(f"{scale!r} is not of the form BETTER/EASY/HARD, such as higher/0.25/0.5")
        return {"better": better, "easy": differences[0], "hard": differences[1]}

    @field_validator("direction")
    @classmethod
    def _direction(cls, direction: str | None) -> str | None:
        if direction is not None and parse_direction(direction) is None:
            raise ValueError(f"{direction!r} is not a direction such as `zh-en`")
        return direction


class TranslationTable(FrozenModel):
    """Settings of the config `translation`."""

    rated: list[RatedTable] = Field(
        default_factory=list,
        description="Rated translations for the config `translation`.",
        json_schema_extra={"flag": "--rated", "text_key": "location", "panel": "Rated translations"},
    )
    per_level: int = Field(100, ge=1, description="Number of pairs per direction and level.")


class MultilingualRecipe(ReleaseRecipe):
    """Recipe of a build of M-RewardBench. Defaults are those of the paper where it states a value."""

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"connection", "review", "audit"}
    extendable: ClassVar[frozenset[str]] = frozenset({"languages"})

    name: ReleaseName = "multilingual-rewardbench"
    languages: list[str] = Field(
        default_factory=list,
        description="FLORES-200 code, such as spa_Latn; repeatable.",
        json_schema_extra={"flag": "--language"},
    )
    english: bool = Field(
        False,
        description="Add the source itself as config eng_Latn, which the original does not have.",
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
                near = [similar for similar in similar_languages(code) if similar != ENGLISH]
                hint = f"did you mean {' or '.join(near)}" if near else "give a code of FLORES-200, such as deu_Latn"
                raise ValueError(f"unknown language {code!r}; {hint}")
            if code == ENGLISH:
                raise ValueError(f"{ENGLISH} is the source language; add the source itself with `english=True`")
        repeated = next((code for code in codes if codes.count(code) > 1), None)
        if repeated:
            raise ValueError(f"the language {repeated} is given twice")
        return codes

    @model_validator(mode="after")
    def _consistent(self) -> "MultilingualRecipe":
        if self.languages and (self.source is None or self.translator is None):
            raise ValueError("`languages=...` requires `source.location=...` and `translator.name=...`")
        if self.english and self.source is None:
            raise ValueError("`english=True` requires `source.location=...`")
        if not self.languages and not self.translation.rated:
            raise ValueError("there is nothing to build; set `languages=...` or `translation.rated=...`")
        if self.connection.max_cost is not None and not self.connection.price:
            raise ValueError("`connection.max_cost=...` requires `connection.price=...`")
        return self


def parse_direction(value: str) -> str | None:
    """Normalize a direction: `zh-en` for `zh_en`, `zh>en` and `ZH→EN`, `eng-deu` for `eng_Latn-deu_Latn`, else None."""
    match = DIRECTION.fullmatch(value.strip().lower())
    return f"{match[1]}-{match[2]}" if match else None
