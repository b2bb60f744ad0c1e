"""Fields of a benchmark's description: columns, original language, earlier pairs, rules and strata."""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, Self

from pluralbench_runs import FrozenModel
from pydantic import Field, model_validator

from pluralbench.errors import DataError

ROW_NUMBER = "#"
LISTS = ("prompt", "labels", "json_texts")

Credit = Literal["pairs", "second-on-ties", "best-of-n", "best-of-n-shared", "mean-of-pairs", "ties"]
"""Rule by which an item counts; see `pluralbench.metrics.credits`."""


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


def _is_none(value: object) -> bool:
    return value is None


class Columns(FrozenModel):
    """Names of the columns of a benchmark's tables.

    A pair has either `chosen` and `rejected`, or `first`, `second` and `labels`. A ranking has `responses` and `rank`.
    Responses that are right or wrong are in `responses` and `right`, or in lists (`Benchmark.multiple_responses`).
    An answer in steps has `steps` and `first_wrong`.

    A name that no column has is a column made of others: "chosen.answer" is the value of a key in an object, or in each
    object of a list; "response_*" is the list of the columns response_1, response_2, and so on; "domain+id" joins two
    columns by a slash.

    Attributes:
        id: Id of the row; "#" numbers the rows.
        prompt: One or more columns, joined by an empty line. A text, a list of messages (`role` and `content`, or
            `from` and `value`), or with `Benchmark.user_turns` a list of the user's texts.
        chosen: Better response: a text, or a conversation that ends with it.
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
        json_texts: Columns of prompts and responses whose cells are JSON. Another column of which each cell looks like
            a list is refused, unless this is an empty list: then such cells are the texts themselves.
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
    rubric: str | None = Field(None, exclude_if=_is_none)
    reference: str | None = Field(None, exclude_if=_is_none)
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


Cell = tuple[str, str | None]
"""A config and one of its subsets: the smallest weighted part of a benchmark."""


class Stratum(FrozenModel):
    """The items of one subset of a config.

    Attributes:
        config: Config.
        subset: Subset; null if the items have none.
        drawn: Number of drawn items.
        items: Number of all items.
    """

    config: str
    subset: str | None = None
    drawn: int = Field(ge=1)
    items: int = Field(ge=1)

    @property
    def weight(self) -> float:
        """The number of items that each drawn item stands for."""
        return self.items / self.drawn
