"""Pairs: a better and a worse response in a column each."""

from typing import Any

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.layouts.layout import Layout, SourceRows, in_lists


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    texts = source.response_texts(source.columns.chosen, source.columns.rejected)
    return {
        "response_ids": pl.lit(["chosen", "rejected"]),
        "responses": in_lists(texts["first"], texts["second"]),
        "rank": pl.lit([1, 2]),
    }


PAIRS = Layout(
    unit="pairs",
    fields=("chosen", "rejected"),
    fits=lambda benchmark, columns: columns.right is None and not benchmark.multiple_responses,
    responses=_responses,
    texts=("chosen", "rejected"),
)
