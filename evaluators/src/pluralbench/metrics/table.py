"""The table of all metrics."""

from importlib import import_module

from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import BenchmarkError
from pluralbench.metrics.metric import Metric

MODULES = (
    *("accuracy", "languages", "calibration", "position", "certainty", "responses", "best_of_n", "cycles"),
    *("people", "votes", "annotations", "plans", "personalize", "users"),
)
"""Modules with metrics, in the order of the numbers of a run."""
METRICS: dict[str, Metric] = {
    metric.name: metric for name in MODULES for metric in import_module(f"pluralbench.metrics.{name}").METRICS
}
"""Metrics by name: what runs, tables, notes, the JSON Schema and the documentation read."""


def named_metrics(benchmark: Benchmark) -> list[Metric]:
    """Return the metrics that a benchmark names; raises `BenchmarkError` unless all are optional metrics."""
    optional = [name for name, metric in METRICS.items() if metric.optional]
    for name in benchmark.metrics:
        if name not in optional:
            raise BenchmarkError(
                f"`metrics` of {benchmark.title} has `{name}`, which is not one of {', '.join(optional)}."
            )
    return [METRICS[name] for name in benchmark.metrics]
