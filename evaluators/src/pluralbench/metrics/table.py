"""The table of all metrics."""

from itertools import chain

from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import BenchmarkError
from pluralbench.metrics import (
    accuracy,
    best_of_n,
    calibration,
    certainty,
    languages,
    people,
    personalize,
    plans,
    position,
    responses,
    users,
)
from pluralbench.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in chain.from_iterable(
        module.METRICS
        for module in (
            accuracy,
            languages,
            calibration,
            position,
            certainty,
            responses,
            best_of_n,
            people,
            plans,
            personalize,
            users,
        )
    )
}
"""Metrics by name: what runs, tables, notes, the JSON Schema and the documentation read."""


def named_metrics(benchmark: Benchmark) -> list[Metric]:
    """Return the metrics that a benchmark's description names.

    Raises:
        BenchmarkError: A name is not that of an optional metric.
    """
    optional = [name for name, metric in METRICS.items() if metric.optional]
    for name in benchmark.metrics:
        if name not in optional:
            raise BenchmarkError(
                f"`metrics` of {benchmark.title} has `{name}`, which is not one of {', '.join(optional)}."
            )
    return [METRICS[name] for name in benchmark.metrics]
