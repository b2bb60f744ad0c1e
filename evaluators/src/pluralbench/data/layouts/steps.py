"""Steps: one answer as a list of steps, and the position of the first wrong one."""

import re
from functools import partial
from typing import Any

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.labels import FIRST, SECOND, label_key
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.layouts.shown import Replies, Shown, show_responses
from pluralbench.data.texts import Row, parsed_value, plain_text, shortened
from pluralbench.errors import DataError

CORRECT, ERRONEOUS = "correct", "erroneous"
"""Subsets of answers without and with a wrong step."""
ITEM_COLUMNS = ("response_ids", "responses", "rank", "subset")


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    """Return the steps as responses, of rank 1 before the first wrong one and 2 from it on."""
    columns = source.columns
    rows = source.each(partial(_parse, columns), columns.steps, columns.first_wrong)
    return dict(zip(ITEM_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def _parse(columns: Columns, row: Row) -> tuple[list[str], list[str], list[int], str]:
    steps, label = parsed_value(row, str(columns.steps)), row[str(columns.first_wrong)]
    if not isinstance(steps, list):
        raise TypeError(f"`{columns.steps}` is not a list: {shortened(steps)}")
    if not steps:
        raise ValueError(f"`{columns.steps}` is empty; an answer has at least one step")
    texts = [plain_text(step, str(columns.steps)) for step in steps]
    blank = next((number for number, text in enumerate(texts) if not text.strip()), None)
    if blank is not None:
        raise ValueError(f"step {blank} in `{columns.steps}` is empty (the first step is 0)")
    key = label_key(label)
    if key is None or not re.fullmatch("-?[0-9]{1,15}", key):
        raise ValueError(f"the label {shortened(label)} in `{columns.first_wrong}` is not a whole number")
    first = int(key)
    if first < -1:
        raise ValueError(
            f"the label {first} in `{columns.first_wrong}` is below -1, the label of an answer without error"
        )
    if first >= len(texts):
        raise ValueError(
            f"the label {first} in `{columns.first_wrong}` is beyond the {len(texts)} steps, of which the first is 0"
        )
    right = len(texts) if first < 0 else first
    ranks = [FIRST] * right + [SECOND] * (len(texts) - right)
    names = [f"step {number}" for number in range(len(texts))]
    return names, texts, ranks, CORRECT if first < 0 else ERRONEOUS


def _check_rows(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for a column of subsets: answers are correct or erroneous by their labels."""
    if columns.subset is not None:
        raise DataError(
            f"{where}: answers in steps have the subsets {CORRECT} and {ERRONEOUS}; leave out the column "
            f"`{columns.subset}` of `subset`, and make what it tells apart configs."
        )


def _show(item: Row, rows: pl.DataFrame, decisions: pl.DataFrame, replies: Replies, variables: str | None) -> Shown:
    """Show the steps with the first wrong one named; `rows` have their scores and the threshold."""
    shown = show_responses(dict(item), rows, decisions, replies, variables)
    first = next((place for place, rank in enumerate(item["rank"]) if rank == SECOND), None)
    if first is not None:
        shown.answers[first]["name"] += ", first wrong"
    return shown


STEPS = Layout(
    unit="answers in steps",
    fields=("steps", "first_wrong"),
    fits=lambda _, columns: columns.steps is not None or columns.first_wrong is not None,
    responses=_responses,
    listed=True,
    check_rows=_check_rows,
    show=_show,
    commands=("score",),
)
