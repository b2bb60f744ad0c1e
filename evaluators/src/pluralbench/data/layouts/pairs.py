"""Pairs: a better and a worse response in a column each."""

from typing import Any

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.layouts.layout import Layout, SourceRows


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    texts = source.response_texts(source.columns.chosen, source.columns.rejected)
    return texts.select(
        response_ids=pl.lit(["chosen", "rejected"]), responses=pl.concat_list("first", "second"), rank=pl.lit([1, 2])
    ).to_dict()


PAIRS = Layout(
    unit="pairs",
    fields=("chosen", "rejected"),
    fits=lambda benchmark, columns: columns.right is None and not benchmark.multiple_responses,
    responses=_responses,
    texts=("chosen", "rejected"),
)
