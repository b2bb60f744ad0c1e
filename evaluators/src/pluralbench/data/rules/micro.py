"""The mean over all items, or over all pairs of responses."""

from collections.abc import Iterator, Sequence

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import credit_of
from pluralbench.data.credits.pairs import PAIRS
from pluralbench.data.fields import Cell
from pluralbench.data.layouts import records_responses
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import (
    Drawn,
    ResampledAccuracy,
    cells_in,
    config_accuracies,
    configs_of,
    pooled_accuracy,
)
from pluralbench.data.rules.rule import Rule, Sizes, Weights


def mean_over_all(benchmark: Benchmark) -> str:
    """Return the words for a mean without weights: over items, or pairs where each pair of a ranking counts."""
    pairs = records_responses(benchmark) and credit_of(benchmark, None) is PAIRS
    return f"mean over all {'pairs of responses' if pairs else 'items'}"


def _accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> Iterator[ResampledAccuracy]:
    configs, ours = configs_of(benchmark, cells)
    yield pooled_accuracy(benchmark, cells, MetricKey("overall"), counts["decisions"], cells_in(cells, ours))
    for config in configs:
        yield from config_accuracies(benchmark, config, cells, counts["decisions"])


def _weights(benchmark: Benchmark, sizes: Sizes) -> Weights:
    total = sum(size for own in sizes.values() for size in own.values())
    return {(config, subset): size / total for config, own in sizes.items() for subset, size in own.items()}


MICRO = Rule("items", mean_over_all, _accuracies, _weights, by_config=False)
