"""Prompts without responses, for policies to answer."""

from typing import Any

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.layouts.layout import Layout, SourceRows


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    empty: list[list[Any]] = [[]] * source.frame.height
    return {"response_ids": empty, "responses": empty, "rank": empty}


PROMPTS = Layout(
    unit="prompts",
    fields=(),
    # The earlier pairs of a user have responses, which are left out of the items afterwards.
    fits=lambda benchmark, _: benchmark.prompts_only and benchmark.history is None,
    responses=_responses,
    commands=("best-of-n", "optimize"),
)
