"""Labeled pairs: two responses, and the labels of one or more annotators, whose majority decides."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.labels import FIRST, SECOND, TIE, label_key
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.texts import LETTERS, first_ids, shortened
from pluralbench.errors import DataError

RANKS = {TIE: [1, 1], FIRST: [1, 2], SECOND: [2, 1]}


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    labels = source.frame.select(source.columns.labels).iter_rows()
    return ordered_pairs(benchmark, source, [benchmark.labels.majority(row) for row in labels])


def ordered_pairs(benchmark: Benchmark, source: SourceRows, better: Sequence[int]) -> dict[str, Any]:
    """Return the better response first, or for rules of `credit` both in their places, named A and B.

    `better` is `FIRST`, `SECOND` or `TIE` for each row.
    """
    columns = source.columns
    texts = source.response_texts(str(columns.first), str(columns.second)).with_columns(
        better=pl.Series(better, dtype=pl.Int64)
    )
    if benchmark.credit:
        return {
            "response_ids": [[*LETTERS]] * texts.height,
            "responses": texts.select(pl.concat_list("first", "second")).to_series(),
            "rank": [RANKS[one] for one in better],
        }
    swapped, tied = pl.col("better") == SECOND, pl.col("better") == TIE
    chosen, rejected = pl.when(swapped).then("second").otherwise("first"), pl.when(swapped).then("first")
    return texts.select(
        response_ids=pl.lit(["chosen", "rejected"]),
        responses=pl.concat_list(chosen, rejected.otherwise("second")),
        rank=pl.concat_list(pl.lit(1), pl.when(tied).then(1).otherwise(2)),
    ).to_dict()


def _check_labels(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    labels = benchmark.labels
    ids = frame[columns.id].to_list() if columns.id in frame.columns else range(frame.height)
    unknown: dict[tuple[str, str], str] = {}
    unlabeled = []
    for row_id, row in zip(ids, frame.select(columns.labels).iter_rows(), strict=True):
        cells = [(name, label) for name, label in zip(columns.labels, row, strict=True) if label_key(label) is not None]
        unlabeled += [] if cells else [str(row_id)]
        for name, label in cells:
            if labels.meaning(label) is None:
                unknown.setdefault((name, shortened(label)), str(row_id))
    if unknown:
        examples = [f"{label} in `{name}` at id {row_id}" for (name, label), row_id in unknown.items()]
        raise DataError(
            f"{where} has unknown labels ({first_ids(examples)}); expected: {labels.expected}. Define them, such as "
            '`labels=["first=A>B", "second=B>A", "tie=A=B"]`, or name a `scale`.'
        )
    if unlabeled:
        label_columns = " or ".join(f"`{name}`" for name in columns.labels)
        raise DataError(
            f"{where} has {plural(len(unlabeled), 'pair')} without a label in {label_columns} (ids "
            f"{first_ids(unlabeled)}); label or remove them."
        )


LABELED_PAIRS = Layout(
    unit="pairs",
    fields=("first", "second", "labels"),
    fits=lambda _, columns: columns.right is None and bool(columns.first or columns.second or columns.labels),
    responses=_responses,
    texts=("first", "second"),
    check_rows=_check_labels,
)
