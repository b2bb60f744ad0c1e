"""What a build of persona judge can be asked to do."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pluralbench_release import LICENSE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe
from pluralbench_runs import FrozenModel, Location, PathName
from pluralbench_tables import Quoting
from pydantic import Field, field_validator, model_validator

from build_persona_judge.persona import MISSING, SETS

RECIPES = Path(__file__).parent / "recipes"
SAMPLE = "sample"
TASKS = ("prism", "opinion_qa", "empathic_conversations", "personal_reddit")
SHARED = ("size", "name", "license")  # keys of every task
SOURCES = "Sources; naming any builds these alone"
OWNERS_TERMS = "What its owner ({}) allows is not known here: read the owner's terms, and ask where they do not say it."


class SourceTable(FrozenModel):
    """A task and where its source is.

    location: `sample`, or where the source's own files are. size: all without it. attribution: whom the card thanks.
    redistribution: why what is built from it may not be passed on, in a sentence for the card; empty where it may.
    missing: values of a persona that say that there is none, when they are the whole value, whatever their case; an
    empty value never is one.
    """

    location: Location
    size: int | None = Field(
        None,
        ge=1,
        description="Items of each task that are no tie, exactly so many.",
    )
    name: str | None = SOURCE_NAME
    attribution: str | None = Field(None, min_length=1)
    license: str | None = LICENSE
    redistribution: str = ""
    missing: list[str] = Field(default_factory=lambda: list(MISSING))

    @property
    def no_value(self) -> frozenset[str]:
        """What `known` takes for missing in this source."""
        return frozenset(" ".join(word.split()).casefold() for word in ["", *self.missing])


class PrismTable(SourceTable):
    """PRISM: which of two responses the person scored higher (paper, A.2).

    exclude_families: the paper leaves out the judge's own family; with those of all its judges left out, one data set
    serves them all. refusals: a response that contains one of these, case and all, is taken for a refusal and left out.
    tie_gap: two responses are tied when their scores differ by at most so much; 9 is the authors' code.
    """

    exclude_families: list[str] = Field(
        default_factory=lambda: ["gpt", "claude", "command"],
        description="Leave out PRISM's responses of models whose name contains this; repeatable.",
        json_schema_extra={"flag": "--exclude-family"},
    )
    refusals: list[str] = Field(default_factory=lambda: ["language model", "AI", "chatbot"])
    tie_gap: float = Field(10, ge=0)


class OpinionQaTable(SourceTable):
    """OpinionQA: which of two answers the person gave to a survey question, one question a wave (paper, A.2).

    location: a folder with a folder for each wave.
    """

    respondents: int = Field(
        200,
        ge=1,
        description="Of each wave of OpinionQA, exactly so many.",
    )
    redistribution: str = OWNERS_TERMS.format("Pew Research Center, whose American Trends Panel it is")


class EmpathicTable(SourceTable):
    """Empathic Conversations: which of two essays about an article the person wrote (paper, A.2).

    essays, persons, articles: the files of the folder, several where there is more than the training set. What two of
    them say of one person differently is not known. pairs_per_article: exactly so many pairs that are no tie, fewer
    where there are no more. tie_gap: two essays are tied when their empathy or their distress scores differ by less; 3
    is the authors' code.
    tie_share: at most this share of the items are ties. quoting: of the files, see `pluralbench_tables.Dialect`.
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
    """Personal Reddit: which of two posts the person wrote, the other by whoever is most like them (paper, A.2)."""


class PeopleTable(SourceTable):
    """People, questions and what they chose, in three CSV files of one's own (see `sources.people_csv`).

    location: a folder with people.csv, questions.csv and choices.csv. task: the name of the config; without it the
    folder's. kind: what is
    asked, which the person prefers ("preference"), which answer they give ("opinion") or what they wrote
    ("authorship"). sentences: by variable, with {} where the value goes. sets: variables by set.
    """

    task: PathName
    kind: Literal["preference", "opinion", "authorship"] = "opinion"
    sentences: dict[str, str] = Field(default_factory=dict)
    sets: dict[str, list[str]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _called(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "task" in values or not isinstance(values.get("location"), str):
            return values
        return values | {"task": Path(values["location"]).resolve().name}

    @field_validator("task")
    @classmethod
    def _own(cls, task: str) -> str:
        if task in TASKS:
            raise ValueError(f"{task} is the name of another source; call the task (or its folder) otherwise")
        return task

    @field_validator("sentences")
    @classmethod
    def _gaps(cls, sentences: dict[str, str]) -> dict[str, str]:
        for name, sentence in sentences.items():
            if "{}" not in sentence:
                raise ValueError(f"the sentence of `{name}` needs {{}} where its value goes")
        return sentences

    @field_validator("sets")
    @classmethod
    def _known(cls, sets: dict[str, list[str]]) -> dict[str, list[str]]:
        for name in sets:
            if name not in SETS:
                raise ValueError(f"there is no set {name!r}; the sets are {', '.join(SETS)}")
        return sets


class PersonaJudgeRecipe(ReleaseRecipe):
    """A build of persona judge. Defaults are the paper's where it gives a value.

    retriever: who finds the person that is most like another. audit: limits that the items of every task have to keep,
    their lengths in characters.
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
        description="people.csv, questions.csv and choices.csv; the task is called after the folder; repeatable.",
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
        """The tasks that are asked for, by name, in the order of the release."""
        own = [(name, getattr(self, name)) for name in TASKS]
        return [(name, table) for name, table in own if table is not None] + [
            (table.task, table) for table in self.people_csv
        ]

    @model_validator(mode="after")
    def _consistent(self) -> "PersonaJudgeRecipe":
        names = [name for name, _ in self.sources]
        if not names:
            raise ValueError(f"nothing is asked for: give a `location` under [{'], ['.join(TASKS)}] or [[people_csv]]")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"the task {twice} is there twice; give each a name of its own")
        if any(table.location == SAMPLE for table in self.people_csv):
            raise ValueError("there is no sample of [[people_csv]]; its README shows one")
        return self
