"""The unweighted mean over configs; with sections, a config's number is the unweighted mean of its sections."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import Drawn, ResampledAccuracy, config_accuracies, configs_of, mean_accuracy
from pluralbench.data.rules.rule import Rule, Sizes, Weights, weights_over_configs


def _words(benchmark: Benchmark) -> str:
    if benchmark.join_configs and benchmark.sections:
        return "unweighted mean of the sections"
    inner = ", each the unweighted mean of its sections" if benchmark.sections else ""
    return f"unweighted mean of the configs{inner}"


def _accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> Iterator[ResampledAccuracy]:
    configs, ours = configs_of(benchmark, cells)
    of_configs = {config: config_accuracies(benchmark, config, cells, counts["decisions"]) for config in configs}
    yield mean_accuracy(MetricKey("overall"), [of_configs[config][0] for config in ours], counts["decisions"])
    yield from chain.from_iterable(of_configs.values())


def _weights(benchmark: Benchmark, sizes: Sizes) -> Weights:
    return weights_over_configs({config: _weights_within(benchmark, own) for config, own in sizes.items()})


def _weights_within(benchmark: Benchmark, sizes: Mapping[str | None, int]) -> dict[str | None, float]:
    if not benchmark.sections:
        return {subset: size / sum(sizes.values()) for subset, size in sizes.items()}
    weights = dict.fromkeys(sizes, 0.0)
    for section in benchmark.sections.values():
        present = {subset: weight for subset, weight in section.items() if subset in sizes}
        if not any(present.values()):
            return dict.fromkeys(sizes, 0.0)
        for subset, weight in present.items():
            weights[subset] += weight / sum(present.values()) / len(benchmark.sections)
    return weights


MACRO = Rule("configs", _words, _accuracies, _weights)
