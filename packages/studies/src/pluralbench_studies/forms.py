"""Forms: the fields of an item that annotators see, and the questions on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

import polars as pl
from pluralbench_runs import digest

from pluralbench_studies.errors import StudyError


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        name: Name of its column in a sheet, and of its control in Label Studio.
        title: The text that annotators see.
        options: The possible answers, as written in a sheet, with their labels. Default: free text.
        about: The field that the question appears under. Default: after all fields.
        optional: Whether it may be left out. A submission with optional answers only is ignored.
        parse: Checks and normalizes an answer, and raises `ValueError` with the reason. Default: the options.
    """

    name: str
    title: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None
    optional: bool = False
    parse: Callable[[str], str] | None = None

    def answer(self, text: str) -> str:
        """Return the normalized answer: the option of a text, ignoring width and case. Raises `ValueError`."""
        if self.parse is not None:
            return self.parse(text)
        if not self.options:
            return text
        option = {_normalize(option): option for option in self.options}.get(_normalize(text))
        if option is None:
            raise ValueError(f"the answer {text!r} to {self.name} is not one of {', '.join(self.options)}")
        return option


@dataclass(frozen=True)
class Form:
    """What annotators see of an item, and the questions on it.

    Attributes:
        fields: Columns to show, in order, with their titles.
        questions: The questions.
        item: Name of the column with the ids.
        alternatives: Whether an annotator answers some of the questions that are not optional, instead of all.
    """

    fields: Mapping[str, str]
    questions: Sequence[Question]
    item: str = "item"
    alternatives: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the questions."""
        return [question.name for question in self.questions]

    @property
    def required(self) -> list[str]:
        """Names of the questions that are not optional."""
        return [question.name for question in self.questions if not question.optional]


def score(name: str, low: int, high: int, *, title: str = "", about: str | None = None) -> Question:
    """Return a question that is answered by a whole number from `low` to `high`."""
    return Question(name, title, {str(number): str(number) for number in range(low, high + 1)}, about)


def preference(name: str, first: str, second: str, *, title: str = "") -> Question:
    """Return a question that is answered by 1, 2, or s for neither, by what annotators call the two alternatives."""
    options = {"1": f"{first} is better", "2": f"{second} is better", "s": "both are alike"}
    return Question(name, title, options)


def split_by_annotator(shown: pl.DataFrame, form: Form) -> dict[str, pl.DataFrame]:
    """Split rows by annotator, and put each annotator's rows into an order that reveals nothing about the items.

    `shown` has `form.item`, `annotator` and the fields, a row for each assigned item.

    Raises:
        StudyError: If a column is missing.
    """
    columns = [form.item, "annotator", *form.fields]
    missing = [name for name in columns if name not in shown.columns]
    if missing:
        raise StudyError(f"The items to show have no column `{missing[0]}`; they have {', '.join(shown.columns)}.")
    frame = shown.select(columns)
    key = pl.Series([digest([annotator, item]) for item, annotator in frame.select(columns[:2]).iter_rows()])
    ordered = frame.with_columns(key.alias("\0key")).sort("annotator", "\0key").drop("\0key")
    return {str(name): rows for (name,), rows in ordered.partition_by("annotator", as_dict=True).items()}


def _normalize(text: str) -> str:
    return normalize("NFKC", text).strip().casefold()
