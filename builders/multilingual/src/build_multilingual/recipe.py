"""What a build of M-RewardBench can be asked to do."""

from pathlib import Path
from typing import ClassVar, Literal

from pluralbench_audit import PairLimits
from pluralbench_calls import Limits, Price
from pluralbench_release import ReleaseName, ReleaseRecipe
from pluralbench_runs import Place, Table
from pluralbench_schemas import ENGLISH, LANGUAGES, near_languages
from pydantic import Field, field_validator, model_validator

from build_multilingual.checks import ChecksTable
from build_multilingual.rated import RatedTable

RECIPES = Path(__file__).parent / "recipes"
COLUMNS = ("id", "prompt", "chosen", "rejected", "chosen_model", "rejected_model", "subset", "category")

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


class SourceTable(Table):
    """The English pairs.

    location: `sample`, a directory or file, or `ORG/NAME[@REVISION]` on the Hub.
    limit: at most so many rows of each subset, the first ones.
    columns: other names of the columns `id`, `prompt`, `chosen`, `rejected`, `chosen_model`, `rejected_model`,
    `subset`, `category`; the last four may be missing, and `id` too.
    categories: which subsets (shell patterns) belong to which category, where the source has no such column.
    prompt_only: subsets (shell patterns) whose answers are code, so that only the prompt is translated.
    """

    location: Place
    split: str = "filtered"
    limit: int | None = Field(None, ge=1)
    columns: dict[str, str] = Field(default_factory=dict)
    categories: dict[str, list[str]] = Field(default_factory=lambda: dict(CATEGORIES))
    prompt_only: list[str] = Field(default_factory=lambda: ["hep-*"])
    name: str | None = None
    licence: str | None = None
    attribution: str | None = None

    @field_validator("columns")
    @classmethod
    def _known(cls, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in COLUMNS:
                raise ValueError(f"there is no column `{name}` to rename; the columns are {', '.join(COLUMNS)}")
        return columns


class TranslatorTable(Table):
    """Who translates. name: a module of `build_multilingual.translators`. model: one of its models.

    glossary: the full resource name of a Google glossary, projects/.../locations/.../glossaries/...
    """

    name: str
    model: Place | None = None
    glossary: str | None = None


class ConnectionTable(Table):
    """How to reach the translator, how fast to ask and what to spend. A build may go on under other values.

    project, location: of Google Cloud. endpoint: a host such as `translate-eu.googleapis.com`, or
    `http://127.0.0.1:PORT` for a server on this machine. retry_seconds: how long a message is sent again that the
    server could not take. price: US dollars for a million characters.
    """

    project: str | None = None
    location: str = "global"
    endpoint: str | None = None
    retry_seconds: float = Field(600.0, gt=0)
    concurrency: int = Field(4, ge=1)
    requests_per_minute: float | None = Field(None, gt=0)
    characters_per_minute: float | None = Field(None, gt=0)
    price: float = Field(0.0, ge=0)
    max_cost: float | None = Field(None, ge=0)

    def limits(self) -> Limits:
        """The limits of every step of the build. What a translator bills by is characters, one for a token here."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=None if self.characters_per_minute is None else self.characters_per_minute / 4,
            price=Price(self.price),
            max_cost=self.max_cost,
        )


class FilterTable(Table):
    """What happens to a row that has no good translation in some language.

    drop: out of all languages ("everywhere", as in the paper), or out of that one.
    decisions_digest: of the human decisions that were followed; the builder fills it in.
    """

    drop: Literal["everywhere", "language"] = "everywhere"
    decisions_digest: str | None = None


class ReviewTable(Table):
    """Human decisions: CSV files with `id`, `language`, `decision`, `reason`.

    preferred: where what reviewers preferred is recorded, beside the `better` of these sheets. judged: what a judge
    preferred on the same rows, such as `items.parquet` of its run (see `preferred.read_preferred`).
    """

    decisions: list[Place] = Field(default_factory=list)
    preferred: list[Place] = Field(default_factory=list)
    judged: Place | None = None


class TranslationTable(Table):
    """The config `translation`. rated: where the rated translations are. per_level: pairs a direction and level."""

    rated: list[RatedTable] = Field(default_factory=list)
    per_level: int = Field(100, ge=1)


class MultilingualRecipe(ReleaseRecipe):
    """A build of M-RewardBench. Defaults are the paper's where it gives a value.

    languages: FLORES-200 codes. english: add the source itself as config `eng_Latn`, which the original leaves out.
    audit: limits that the pairs of every config have to keep, their lengths in characters.
    """

    operational: ClassVar[frozenset[str]] = ReleaseRecipe.operational | {"connection", "review", "audit"}

    name: ReleaseName = "multilingual-rewardbench"
    languages: list[str] = Field(default_factory=list)
    english: bool = False
    source: SourceTable | None = None
    translator: TranslatorTable | None = None
    connection: ConnectionTable = ConnectionTable()
    checks: ChecksTable = ChecksTable()
    filter: FilterTable = FilterTable()
    review: ReviewTable = ReviewTable()
    translation: TranslationTable = TranslationTable()
    audit: PairLimits = PairLimits()

    @field_validator("languages")
    @classmethod
    def _languages(cls, codes: list[str]) -> list[str]:
        for code in codes:
            if code not in LANGUAGES:
                near = [known for known in near_languages(code) if known != ENGLISH]
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
