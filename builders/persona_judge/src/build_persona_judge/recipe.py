"""The recipe of the persona judge dataset: the settings of a build."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName
from pluralbench_runs.study_options import RELEASE, StudyRecipe
from pluralbench_tables import Quoting
from pydantic import Field, field_validator, model_validator

from build_persona_judge.persona import MISSING

RECIPES = Path(__file__).parent / "recipes"
SAMPLE = "sample"
TASKS = ("prism", "opinion_qa", "empathic_conversations", "personal_reddit")
SHARED = ("size", "name", "license")  # keys of every task
SOURCES = "Sources; naming any builds only these"
OWNERS_TERMS = "What its owner ({}) allows is not recorded: read the owner's terms, and ask if they are unclear."


class SourceTable(FrozenModel):
    """A task and its source.

    Attributes:
        location: `sample`, or the location of the source's files.
        size: Default: all items.
        attribution: Credit on the card.
        redistribution: Reason why the result may not be redistributed, a sentence for the card; empty if it may be.
        missing: Words for a missing value of a persona. They match whole values, ignoring case. Empty values are always
            missing.
    """

    location: Location
    size: int | None = Field(None, ge=1, description="Exact number of items of each task, ties not counted.")
    name: str | None = SOURCE_NAME
    attribution: str | None = Field(None, min_length=1)
    license: str | None = LICENSE
    redistribution: str = ""
    missing: list[str] = Field(default_factory=lambda: list(MISSING))

    @property
    def missing_values(self) -> frozenset[str]:
        """Words for a missing value in this source, as `persona.clean_value` takes them."""
        return frozenset(" ".join(word.split()).casefold() for word in ["", *self.missing])


class PrismTable(SourceTable):
    """PRISM: which of two responses the person scored higher (paper, A.2).

    Attributes:
        exclude_families: The paper drops the judge's own model family. Dropping those of all its judges makes one
            dataset usable for all of them.
        refusals: A response that contains one of these (case-sensitive) counts as a refusal and is dropped.
        tie_gap: Two responses are tied if their scores differ by this or less; the authors' code has 9.
    """

    exclude_families: list[str] = Field(
        default_factory=lambda: ["gpt", "claude", "command"],
        description="Drop PRISM's responses of models whose name contains this; repeatable.",
        json_schema_extra={"flag": "--exclude-family"},
    )
    refusals: list[str] = Field(default_factory=lambda: ["language model", "AI", "chatbot"])
    tie_gap: float = Field(10, ge=0)


class OpinionQaTable(SourceTable):
    """OpinionQA: which of two answers the person gave to a survey question, one question per wave (paper, A.2).

    Attributes:
        location: A folder with a folder for each wave.
    """

    respondents: int = Field(200, ge=1, description="Exact number of respondents per wave of OpinionQA.")
    redistribution: str = OWNERS_TERMS.format("Pew Research Center, for the American Trends Panel")


class EmpathicTable(SourceTable):
    """Empathic Conversations: which of two essays about an article the person wrote (paper, A.2).

    Attributes:
        quoting: Quoting of the files, see `pluralbench_tables.Dialect`.
        essays: Files of the essays.
        persons: Files of the writers. A value that differs between two rows of a person is treated as missing.
        articles: Files of the articles.
        pairs_per_article: Maximum number of pairs per article that are not ties.
        tie_gap: Two essays are tied if their empathy or distress scores differ by less; the authors' code has 3.
        tie_share: Maximum share of ties among the items.
    """

    quoting: Quoting | None = None
    essays: list[str] = Field(
        default_factory=lambda: ["trac3_EMP_train.csv"],
        min_length=1,
        description="Essays in the WASSA folder; repeatable.",
        json_schema_extra={"metavar": "FILE"},
    )
    persons: list[str] = Field(
        default_factory=lambda: ["trac4_PER_train.csv"],
        min_length=1,
        description="Their writers in the WASSA folder; repeatable.",
        json_schema_extra={"metavar": "FILE"},
    )
    articles: list[str] = Field(default_factory=lambda: ["articles_adobe_AMT.csv"], min_length=1)
    pairs_per_article: int = Field(5, ge=1)
    tie_gap: float = Field(2, ge=0)
    tie_share: float = Field(0.2, ge=0, lt=1)
    redistribution: str = OWNERS_TERMS.format("its authors and the WASSA shared task")


class RedditTable(SourceTable):
    """Personal Reddit: which of two posts the person wrote; the other is by the most similar person (paper, A.2)."""


class PeopleTable(SourceTable):
    """Your own people, questions and choices in three CSV files (see `sources.people_csv`).

    Attributes:
        location: A folder with people.csv, questions.csv and choices.csv.
        task: Name of the config. Default: the folder's name.
        kind: The question: which option the person prefers ("preference"), which answer they give ("opinion") or which
            text they wrote ("authorship").
        sentences: Sentences by variable, with {} for the value.
        sets: Variables by set of the ablation.
    """

    task: PathName
    kind: Literal["preference", "opinion", "authorship"] = "opinion"
    sentences: dict[str, Annotated[str, Field(pattern=r"\{\}")]] = Field(default_factory=dict)
    sets: dict[Literal["key", "least", "key-code", "least-code"], list[str]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _default_task(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "task" in values or not isinstance(values.get("location"), str):
            return values
        return values | {"task": Path(values["location"]).resolve().name}

    @field_validator("task")
    @classmethod
    def _check_task(cls, task: str) -> str:
        if task in TASKS:
            raise ValueError(f"{task} is the name of another source; rename the task or its folder")
        return task


class PersonaJudgeRecipe(ReleaseRecipe):
    """Recipe of the persona judge dataset. Defaults are the paper's if it gives a value.

    Attributes:
        retriever: Model that finds the most similar person.
        audit: Limits for the items of every task, with lengths in characters.
    """

    runtime_only: ClassVar[frozenset[str]] = ReleaseRecipe.runtime_only | {"audit", "labels"}

    name: ReleaseName = "persona-judge"
    retriever: Location = Field(
        "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2",
        description="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.",
    )
    prism: PrismTable | None = Field(
        None,
        description="PRISM: a folder, or `ORG/NAME@REVISION` on the Hub.",
        json_schema_extra={"text_key": "location", "panel": SOURCES},
    )
    opinion_qa: OpinionQaTable | None = Field(
        None,
        description="OpinionQA's folder of waves.",
        json_schema_extra={"metavar": "DIR", "text_key": "location", "panel": SOURCES},
    )
    empathic_conversations: EmpathicTable | None = Field(
        None,
        description="The WASSA files.",
        json_schema_extra={"metavar": "DIR", "text_key": "location", "panel": SOURCES},
    )
    personal_reddit: RedditTable | None = Field(
        None,
        description="Personal Reddit's JSONL file.",
        json_schema_extra={"metavar": "FILE", "text_key": "location", "panel": SOURCES},
    )
    people_csv: list[PeopleTable] = Field(
        default_factory=list,
        description="Folder with people.csv, questions.csv and choices.csv, which names the task; repeatable.",
        json_schema_extra={"metavar": "DIR", "text_key": "location", "panel": SOURCES},
    )
    labels: Location | None = Field(
        None,
        description="Third-person labels of the items: task and row or id, annotator, answer, certainty.",
        json_schema_extra={"metavar": "FILE"},
    )
    audit: PairLimits = PairLimits()

    @property
    def sources(self) -> list[tuple[str, SourceTable]]:
        """The selected tasks by name, in the order of the release."""
        tables = [(name, getattr(self, name)) for name in TASKS]
        return [(name, table) for name, table in tables if table is not None] + [
            (table.task, table) for table in self.people_csv
        ]

    @model_validator(mode="after")
    def _consistent(self) -> "PersonaJudgeRecipe":
        names = [name for name, _ in self.sources]
        if not names:
            raise ValueError(f"there is no source; set a `location` under [{'], ['.join(TASKS)}] or [[people_csv]]")
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated:
            raise ValueError(f"two tasks have the name {repeated}; rename one")
        if any(table.location == SAMPLE for table in self.people_csv):
            raise ValueError("[[people_csv]] has no sample; its page shows an example")
        return self


class LabelRecipe(StudyRecipe):
    """Settings of a study of third-person labels. The defaults are the paper's.

    Attributes:
        digest: Digest of the items.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"data"}

    data: Location = RELEASE
    task: str = Field(description="Config whose items are labeled, such as opinion_qa.")
    digest: str = ""
    limit: int = Field(300, ge=1, description="Maximum number of items.")
    annotators_per_item: int = Field(3, ge=1)
