"""Fields of a benchmark's description: columns, original language, earlier pairs, rules and strata."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Literal, Self

from pluralbench_runs import FrozenModel
from pydantic import Field, field_validator, model_validator

from pluralbench.data.labels import Values, label_key
from pluralbench.errors import DataError

ROW_NUMBER = "#"
ID = "#id"
"""Column of a row's id as text."""
LISTS = ("prompt", "labels", "json_texts")


def parse_changes(
    changes: Sequence[str], fields: Collection[str], error: type[Exception] = DataError
) -> Iterator[tuple[str, str]]:
    """Yield field and column of changes such as "prompt=text". Raises `error` for another form or field."""
    for change in changes:
        field, _, column = change.partition("=")
        if field not in fields or not column:
            raise error(
                f"`columns=[{change!r}]` does not have the form FIELD=COLUMN with FIELD one of {', '.join(fields)}."
            )
        yield field, column


def is_none(value: object) -> bool:
    """Return whether a field is not set, so that records without it stay as they are."""
    return value is None


class Columns(FrozenModel):
    """Names of the columns of a benchmark's tables.

    A pair has either `chosen` and `rejected`, or `first`, `second` and `labels`. A ranking has `responses` and `rank`.
    Responses that are right or wrong are in `responses` and `right`, or in lists (`Benchmark.multiple_responses`).
    An answer in steps has `steps` and `first_wrong`.

    A name that no column has is a column made of others: "chosen.answer" is the value of a key in an object, or in each
    object of a list; "response_*" is the list of the columns response_1, response_2, and so on, or response_a,
    response_b; "domain+id" joins two columns by a slash.

    Attributes:
        id: Id of the row; "#" numbers the rows.
        prompt: One or more columns, joined by an empty line. A text, a list of messages (`role` and `content`, or
            `from` and `value`), or with `Benchmark.user_turns` a list of the user's texts.
        chosen: Better response: a text, or a conversation that ends with it and whose other turns are in the prompt.
        rejected: Worse response.
        first: First response of a labeled pair.
        second: Second response of a labeled pair.
        labels: Labels of one or more annotators, whose majority decides; see `Labels`.
        responses: Responses of a ranking: a list of texts or of {id, content}. With `right`, also one text a row, see
            `group`; a list of steps is one text with a line per step.
        right: Labels of the responses, which say whether a response is right (the meaning "first" of `Labels`) or wrong
            ("second"): a list as long as that of the responses.
        group: Column that rows of one item share, if each row has one response with its value of `right` or `rank`.
        compared: Pairs of responses that count, as a list of [position, position] from 0; a pair may repeat. Default:
            every right response with every wrong one.
        rank: Ranks of a ranking: a list of whole numbers or of {id, rank}, or a mapping by id. Lower is better; ties
            share a number.
        steps: Steps of one answer: a list of texts.
        first_wrong: Position of the first wrong step, from 0; -1 if all steps are right.
        pairs: Pairs of a ranking to train on, instead of all pairs in the ranks: a list of [better, worse] by id, or of
            [first, second, mark] with the mark 1, 2 or s. Only training reads it.
        subset: Subset of the row, which sections weight.
        cluster: Cluster of the row, such as a user. Default: rows with the same prompt or the same id.
        system: System message.
        profile: Posts of the user.
        aspects: Rubric aspects.
        persona: Persona of the user: a text or a list of sentences.
        rubric: Rubric of the item, for judges with a prompt of their own: a text or a list of lines.
        reference: Reference answer, likewise.
        json_texts: Columns of prompts, responses and context whose cells are JSON. Another one of which each cell looks
            like a list is refused, unless this is an empty list: then such cells are the texts themselves.
    """

    id: str = "id"
    prompt: tuple[str, ...] = Field(("prompt",), min_length=1)
    chosen: str = "chosen"
    rejected: str = "rejected"
    first: str | None = None
    second: str | None = None
    labels: tuple[str, ...] = ()
    responses: str | None = None
    right: str | None = None
    group: str | None = None
    compared: str | None = None
    rank: str | None = None
    steps: str | None = None
    first_wrong: str | None = None
    pairs: str | None = None
    subset: str | None = None
    cluster: str | None = None
    system: str | None = None
    profile: str | None = None
    aspects: str | None = None
    persona: str | None = None
    rubric: str | None = Field(None, exclude_if=is_none)
    reference: str | None = Field(None, exclude_if=is_none)
    json_texts: tuple[str, ...] | None = None


class Reference(FrozenModel):
    """The items in the language from which a benchmark was translated.

    Attributes:
        config: Their config, in the data and in a run.
        data: Dataset on the Hub, if they are not in the data.
        split: Split of that dataset.
        columns: Columns of that dataset that differ from the benchmark's.
        code: Subsets whose answers are code, as shell patterns.
    """

    config: str
    data: str
    split: str
    columns: dict[str, str] = Field(default_factory=dict)
    code: tuple[str, ...] = ()


class HistoryRows(FrozenModel):
    """The rows that are earlier pairs of an item's user (the value of the column `cluster`).

    If no column has a profile, the questions of the earlier pairs are the user's posts, latest first.

    Attributes:
        column: Column that marks earlier pairs, which are not scored. Default: every row is scored, and the earlier
            pairs of an item are the rows of its user above it in the table.
        values: Values of `column` that mark earlier pairs.
    """

    column: str | None = None
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.column is None) != (not self.values):
            raise ValueError("`column` and `values` require each other; set both, or neither for the rows above")
        return self


VOTE_COLUMN = "#column"
"""Attribute of a vote: the name of the column that it is in."""


class People(FrozenModel):
    """A table of the people who voted, beside the tables of items, with a row a person.

    Attributes:
        table: Config of the table.
        id: Column of the people's ids, which `Annotations.annotator` has too.
    """

    table: str
    id: str


class Annotations(FrozenModel):
    """Votes of people, and where a table has them.

    Without `columns`, a row has one vote, and rows with the same prompt and responses are one item, or a row has a list
    of votes. With `columns`, each of them has one vote, or with `vote` a list of objects with these fields. If `vote`
    is the column `Columns.right`, which marks each response, the vote is for the one that it marks as right.

    Attributes:
        vote: Column of the votes, or field of the objects in `columns`. Of pairs, votes have the meanings of
            `Benchmark.labels`; else they name the response that the person picked, see `picks`.
        columns: Columns of the votes. A column with one vote does not say who voted, unless `same_people`.
        annotator: Column of the annotators' ids, or field of the objects; "#column+id" joins the name of the column and
            a field, if ids in different columns are of different people. Default: the people are not known.
        attributes: Columns with attributes of the annotators by their names, or fields of the objects; "#column" is
            the name of the column that the vote is in. A column of the table `people` is named TABLE.COLUMN.
        people: Table of the people. Default: none; what is known of them is beside the votes.
        picks: Votes for the first response, the second, and so on. Default: a vote is the text of the response.
        grades: Strength of each label of a pair, above 0 and at most 1. Default: votes have none, or with a scale of
            labels their distance from the tie, as a share of the largest.
        missing: Values that are no vote and no attribute, beside empty ones.
        same_people: Whether a column has the votes of the same person in all rows.
        by_person: Whether each row is an item of its own, which only its person has decided.
        persona: Sentences that make a persona of the person's attributes, with {} for the value. Only `by_person`.
        repeated: Several votes of a person on an item that differ: "error", keep the "first", or "drop" all of them.
        varying: Attributes that vary for a person: "error", or "drop" them for this person.
    """

    vote: str | None = None
    columns: tuple[str, ...] = ()
    annotator: str | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
    people: People | None = Field(None, exclude_if=is_none)
    picks: Values = ()
    grades: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    missing: Values = ()
    same_people: bool = False
    by_person: bool = False
    persona: dict[str, str] = Field(default_factory=dict)
    repeated: Literal["error", "first", "drop"] = "error"
    varying: Literal["error", "drop"] = "error"

    @field_validator("attributes")
    @classmethod
    def _names(cls, attributes: dict[str, str]) -> dict[str, str]:
        wrong = next((name for name in attributes if not re.fullmatch("[a-z][a-z0-9_]*", name)), None)
        if wrong is not None:
            raise ValueError(f"the attribute {wrong!r} is not named by small letters, digits and _")
        return attributes

    @field_validator("grades")
    @classmethod
    def _grades(cls, grades: dict[str, float]) -> dict[str, float]:
        return {label_key(label) or "": grade for label, grade in grades.items()}

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if "" in {self.vote, *self.columns}:
            raise ValueError("`vote` or `columns` names a column by an empty text; write its name")
        if self.vote is None and not self.columns:
            raise ValueError("`vote` or `columns` says where the votes are; name one of them")
        of_objects = self.annotator is not None or bool({*self.attributes.values()} - {VOTE_COLUMN})
        if self.vote is None and of_objects:
            raise ValueError("`annotator` and `attributes` in `columns` require `vote`, the field of the votes")
        if self.same_people and (self.vote is not None or not self.columns):
            raise ValueError("`same_people` is of `columns` that have one vote each; leave it out")
        wrong = next((name for name, text in self.persona.items() if text.count("{}") != 1), None)
        if wrong is not None or not self.persona.keys() <= self.attributes.keys():
            raise ValueError("`persona` has a sentence for each of some attributes, with one {} for the value")
        if self.persona and not self.by_person:
            raise ValueError("`persona` requires `by_person`, since an item has the persona of one person")
        for name, given in (("by_person", self.by_person), ("people", self.people is not None)):
            if given and (self.columns or self.annotator is None):
                raise ValueError(f"`{name}` requires a column `vote` and a column `annotator`")
        return self

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of a table that this reads."""
        named: Iterable[str | None] = self.columns or (self.vote, self.annotator, *self.attributes.values())
        return tuple(dict.fromkeys(name for name in named if name and name != VOTE_COLUMN))


class Turns(FrozenModel):
    """Conversations that are rows: the columns of each turn, and how a turn follows from the one before.

    Each turn becomes a row of its own: its columns lose their prefix, its prompt is the conversation up to it, as a
    list of messages, and the column `turn` has its number from 1.

    Attributes:
        prefixes: What the columns of each turn begin with, in order.
        prompt: Column of what the user writes in a turn, after the prefix. A turn without it is not there.
        picked: Column that names the column of the response with which the conversation goes on, after the prefix.
        missing: Values that are no text, beside empty ones.
    """

    prefixes: tuple[str, ...] = Field(min_length=1)
    prompt: str = "prompt"
    picked: str
    missing: tuple[str, ...] = ()


Cell = tuple[str, str | None]
"""A config and one of its subsets: the smallest weighted part of a benchmark."""


class Stratum(FrozenModel):
    """The items of one subset of a config, of which some are drawn; the subset is null if the items have none."""

    config: str
    subset: str | None = None
    drawn: int = Field(ge=1)
    items: int = Field(ge=1)

    @property
    def weight(self) -> float:
        """The number of items that each drawn item stands for."""
        return self.items / self.drawn
