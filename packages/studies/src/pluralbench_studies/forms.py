"""What people see of an item, and what they are asked about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

import polars as pl
from pluralbench_runs import digest

from pluralbench_studies.errors import AnswersError


@dataclass(frozen=True)
class Question:
    """A question, answered by one of `options` (what is written down, and how it reads), or by free text without any.

    name: of the column and the control. about: the field that it stands beneath; without it, it comes after all fields.
    """

    name: str
    title: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None

    def answer(self, text: str) -> str:
        """What a text stands for: an option, whatever its width and case, or the free text itself.

        Raises `ValueError`, which reads as the end of a sentence, for a text that is no option.
        """
        if not self.options:
            return text
        known = {_folded(option): option for option in self.options}
        found = known.get(_folded(text))
        if found is None:
            raise ValueError(f"the answer {text!r} to {self.name} is none of {', '.join(self.options)}")
        return found


@dataclass(frozen=True)
class Form:
    """What is shown of an item and asked about it.

    fields: the columns shown, in order, with their titles. item: what the column with the ids is called.
    """

    fields: Mapping[str, str]
    questions: Sequence[Question]
    item: str = "item"

    @property
    def names(self) -> list[str]:
        """The names of the questions."""
        return [question.name for question in self.questions]


def score(name: str, low: int, high: int, *, title: str = "", about: str | None = None) -> Question:
    """A whole number from `low` to `high`, both included."""
    return Question(name, title, {str(number): str(number) for number in range(low, high + 1)}, about)


def preference(name: str, first: str, second: str, *, title: str = "") -> Question:
    """Which of two is better: 1, 2, or s for neither. first, second: what they are called."""
    options = {"1": f"{first} is better", "2": f"{second} is better", "s": "both are alike"}
    return Question(name, title, options)


def by_annotator(shown: pl.DataFrame, form: Form) -> dict[str, pl.DataFrame]:
    """What each annotator sees, by name: `form.item`, `annotator` and the fields, a row for each item given.

    The rows of an annotator are in an order that tells nothing of the items. Raises `AnswersError` for a column that is
    not there.
    """
    columns = [form.item, "annotator", *form.fields]
    missing = [name for name in columns if name not in shown.columns]
    if missing:
        raise AnswersError(f"The items to show have no column `{missing[0]}`; they have {', '.join(shown.columns)}.")
    frame = shown.select(columns)
    key = pl.Series([digest([annotator, item]) for item, annotator in frame.select(columns[:2]).iter_rows()])
    ordered = frame.with_columns(key.alias("\0key")).sort("annotator", "\0key").drop("\0key")
    return {str(name): rows for (name,), rows in ordered.partition_by("annotator", as_dict=True).items()}


def _folded(text: str) -> str:
    return normalize("NFKC", text).strip().casefold()
