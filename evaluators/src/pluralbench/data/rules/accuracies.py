"""Accuracies that rules combine, each with what its interval needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of
from pluralbench_measures.intervals import Linearization, Strata

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey

Counts = Mapping[str, Sums]
"""Sums by cluster and cell: `decisions`, and those of `Rule.tables`."""
Drawn = Mapping[str, Resampled]
"""`Counts` as measured, and perturbed, resampled or exchanged."""


@dataclass(frozen=True)
class ResampledAccuracy:
    """An accuracy in each row of perturbed or resampled counts.

    Attributes:
        key: Name of the number.
        values: Accuracy as measured (row 0) and in each further row. Shape (rows,).
        strata: Cells that the accuracy is computed from, by stratum; see `Linearization.share`.
        n: Number of its decisions.
        clusters: Number of clusters of its decisions.
    """

    key: MetricKey
    values: Array
    strata: Strata
    n: int
    clusters: int

    def estimate(self, linearized: Linearization, benchmark: Benchmark) -> Estimate:
        """Return the accuracy with its interval."""
        stratified = bool(benchmark.strata)
        return linearized.share(self.values, self.strata, self.n, self.clusters, stratified=stratified)


def in_overall(benchmark: Benchmark) -> pl.Expr:
    """Return whether rows are of a config behind the overall number."""
    return ~pl.col("config").is_in(sorted(benchmark.outside_overall))


def configs_of(benchmark: Benchmark, cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Return all configs of the cells, and those behind the overall number."""
    configs = list(dict.fromkeys(config for config, _ in cells))
    return configs, [config for config in configs if config not in benchmark.outside_overall]


def cells_in(cells: Sequence[Cell], configs: Sequence[str]) -> list[int]:
    """Return the places of the configs' cells."""
    return [place for place, (config, _) in enumerate(cells) if config in configs]


def separate_strata(places: Iterable[int]) -> list[list[int]]:
    """Return the strata of a mean over cells: each cell is its own stratum."""
    return [[place] for place in places]


def accuracy_of(
    key: MetricKey, values: Array, source: Resampled, strata: Strata, clustered: Resampled | None = None
) -> ResampledAccuracy:
    """Return an accuracy from its values; `clustered` is the source of its number of clusters, if not `source`."""
    places = [cell for cells in strata for cell in cells]
    return ResampledAccuracy(key, values, strata, source.decisions(places), (clustered or source).clusters(places))


def mean_accuracy(key: MetricKey, parts: Sequence[ResampledAccuracy], source: Resampled) -> ResampledAccuracy:
    """Compute the unweighted mean of accuracies from one source."""
    strata = [stratum for one in parts for stratum in one.strata]
    return accuracy_of(key, mean_of([one.values for one in parts]), source, strata)


def pooled_accuracy(
    benchmark: Benchmark, cells: Sequence[Cell], key: MetricKey, source: Resampled, places: Sequence[int]
) -> ResampledAccuracy:
    """Compute the accuracy over all decisions of some cells.

    A cell of drawn items has the weight of all its decisions, so that rounding in the draw does not change the number.
    """
    if not benchmark.strata:
        return accuracy_of(key, source.pooled(places), source, [places])
    drawn = {(stratum.config, stratum.subset): stratum.weight for stratum in benchmark.strata}
    weights = [float(source.counts[0, place]) * drawn.get(cells[place], 1.0) for place in places]
    return accuracy_of(key, source.weighted(places, weights), source, separate_strata(places))


def config_accuracies(
    benchmark: Benchmark, config: str, cells: Sequence[Cell], pairs: Resampled
) -> list[ResampledAccuracy]:
    """Compute a config's accuracy, and those of its sections: each the weighted mean of its subsets."""
    place = {subset: at for at, (own, subset) in enumerate(cells) if own == config}
    key = MetricKey("accuracy", config)
    if not benchmark.sections or config in benchmark.excluded_configs:
        return [pooled_accuracy(benchmark, cells, key, pairs, list(place.values()))]
    sections = []
    for name, weights in benchmark.sections.items():
        present = {place[subset]: weight for subset, weight in weights.items() if subset in place}
        values = pairs.weighted(list(present), list(present.values()))
        sections.append(accuracy_of(key._replace(section=name), values, pairs, separate_strata(sorted(present))))
    # A missing section makes the mean missing: the mean of fewer sections is another quantity.
    strata = separate_strata(at for subset, at in place.items() if subset in benchmark.section_of)
    return [accuracy_of(key, mean_of([one.values for one in sections]), pairs, strata), *sections]
