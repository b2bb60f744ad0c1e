"""Responses that are right or wrong: a list of responses, and a list of their labels."""

from functools import partial
from typing import Any

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.labels import FIRST, SECOND, Labels
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.layouts.listed import Responses, read_lists
from pluralbench.data.texts import Row, first_ids, is_texts, parsed_value, plain_text, shortened
from pluralbench.errors import DataError


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    columns = source.columns
    return read_lists(source, partial(_parse, columns, benchmark.labels), columns.responses, columns.right)


def _parse(columns: Columns, labels: Labels, row: Row) -> Responses:
    """Read responses, which are named by their positions from 0 and have rank 1 if right, 2 if wrong."""
    column = str(columns.responses)
    responses, right = (parsed_value(row, str(name)) for name in (columns.responses, columns.right))
    for name, values in ((columns.responses, responses), (columns.right, right)):
        if not isinstance(values, list):
            raise TypeError(f"`{name}` is not a list: {shortened(values)}")
    if len(responses) != len(right):
        raise ValueError(f"`{column}` has {len(responses)} responses and `{columns.right}` has {len(right)} labels")
    texts = ["\n".join(one) if is_texts(one) else plain_text(one, column) for one in responses]
    return [*map(str, range(len(texts)))], texts, [labels.meaning(label) for label in right]


def _check_rows(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for labels that say neither that a response is right nor that it is wrong."""
    column, labels = str(columns.right), benchmark.labels
    seen = frame[column].explode() if isinstance(frame[column].dtype, pl.List) else frame[column]
    values = seen.unique(maintain_order=True).to_list()
    unknown = [label for label in values if labels.meaning(label) not in {FIRST, SECOND}]
    if unknown:
        raise DataError(
            f"{where} has unknown labels in `{column}` ({first_ids([*map(shortened, unknown)])}); expected: "
            f'{labels.right_or_wrong}. Define them, such as `labels=["first=true", "second=false"]`.'
        )


def _check_items(benchmark: Benchmark, columns: Columns, items: pl.DataFrame, where: str) -> None:
    for rank, kind in ((FIRST, "right"), (SECOND, "wrong")):
        without = items.filter(~pl.col("rank").list.contains(rank))["id"].to_list()
        if without:
            raise DataError(
                f"{where} has {plural(len(without), 'item')} without a {kind} response (ids "
                f"{first_ids(without)}); add one, or remove the item."
            )


RIGHT_AND_WRONG = Layout(
    unit="prompts with right and wrong responses",
    fields=("responses", "right"),
    fits=lambda _, columns: columns.right is not None,
    responses=_responses,
    listed=True,
    check_rows=_check_rows,
    check_items=_check_items,
)
