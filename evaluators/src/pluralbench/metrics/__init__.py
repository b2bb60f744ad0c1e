"""Metrics of runs: each is an entry of `METRICS` in its module, with the function that computes it."""

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.votes import Votes
from pluralbench.metrics.baselines import baseline_numbers
from pluralbench.metrics.decided import THRESHOLD, Decided
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.metric import Numbers
from pluralbench.metrics.table import METRICS, named_metrics


def measure(
    benchmark: Benchmark,
    decisions: pl.DataFrame,
    items: pl.DataFrame | None = None,
    responses: pl.DataFrame | None = None,
    verdicts: pl.DataFrame | None = None,
    *,
    votes: Votes | None = None,
    annotations: pl.DataFrame | None = None,
    threshold: float = THRESHOLD,
) -> pl.DataFrame:
    """Compute the metrics frame of a run of `score` or a judge; see `Decided` for the arguments."""
    decided = Decided(benchmark, decisions, items, responses, verdicts, votes, annotations, threshold)
    return metrics_frame(numbers_of(decided))


def numbers_of(decided: Decided) -> Numbers:
    """Yield the numbers of all metrics that a benchmark has, and those of the baselines."""
    named = {metric.compute for metric in named_metrics(decided.benchmark)}
    optional = {metric.compute for metric in METRICS.values() if metric.optional}
    for compute in dict.fromkeys(metric.compute for metric in METRICS.values()):
        if compute is not None and (compute in named or compute not in optional):
            yield from compute(decided)
    yield from baseline_numbers(decided)
