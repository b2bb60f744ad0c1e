"""Accuracies of personalized reward models with and without a profile, and the gain from the profile.

Accuracy is strict: a tie is wrong. A decision counts as the share of seeds that got it right. Intervals and tests are
clustered by user, so they quantify the uncertainty about other users, not about other seeds; the standard deviation
over seeds is a number of its own. The overall number of a set is the mean over its decisions or the unweighted mean
over its configs, as its benchmark defines it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of, sums_of
from pluralbench_measures.intervals import Strata, linearize
from pluralbench_measures.paired import holm, interval_p_value

from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import separate_strata
from pluralbench.metrics.metric import Metric, Numbers

COMPARED = (("without", "with"), ("posts", "with"), ("shuffled", "with"))
"""Pairs of conditions; the gain is the second minus the first."""
MEASURES = ("posts", "words", "distance")
BINS, MIN_DECISIONS = 4, 8
"""Number of bins with equally many decisions, and minimum number of decisions per bin."""
KEYS = ("config", "item", "pair", "cluster")


class _Part(NamedTuple):
    sums: Sums
    strata: Strata
    n: int
    clusters: int


def method_numbers(items: pl.DataFrame, by_config: Mapping[str, bool]) -> Numbers:
    """Yield all numbers of a personalize run; `by_config` says whether that of a set is a mean over configs."""
    for name, mean in by_config.items():
        own = items.filter(pl.col("set") == name)
        configs = own["config"].unique(maintain_order=True).to_list()
        yield from _set_numbers(own, name, None, by_config=mean)
        for config in configs if len(configs) > 1 else []:
            yield from _set_numbers(own.filter(pl.col("config") == config), name, config, by_config=mean)
        for measure in MEASURES:
            yield from _by_measure(own, name, measure)


def _set_numbers(items: pl.DataFrame, name: str, config: str | None, *, by_config: bool) -> Numbers:
    parts = {key: _part(rows, by_config=by_config) for key, rows in _by_condition(items).items()}
    seeds = items.partition_by("method", "condition", "seed", as_dict=True)
    for (method, condition), part in parts.items():
        key = MetricKey("accuracy", config, set=name, method=method, condition=condition)
        yield key, _accuracy(part)
        own = [rows for key, rows in seeds.items() if key[:2] == (method, condition)]
        yield key._replace(metric="seeds_sd"), _over_seeds(own, by_config=by_config)
    methods = list(dict.fromkeys(method for method, _ in parts))
    for first, second in COMPARED:
        compared = [name for name in methods if (name, first) in parts and (name, second) in parts]
        gains = [_gain(parts[method, first], parts[method, second]) for method in compared]
        for method, gain in zip(compared, gains, strict=True):
            yield MetricKey("gain", config, set=name, method=method, condition=f"{second}-{first}"), gain
        # Only whole sets are tested, to keep the number of tests small.
        tests = [interval_p_value(gain) for gain in gains if config is None]
        for metric, values in (("p_value", tests), ("p_holm", holm(tests) if len(tests) > 1 else tests)):
            for method, p in zip(compared if tests else [], values, strict=True):
                key = MetricKey(metric, set=name, method=method, condition=f"{second}-{first}")
                yield key, Estimate(p)


def _by_condition(items: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    shares = items.group_by("method", "condition", *KEYS, maintain_order=True).agg(
        correct=pl.col("correct").cast(pl.Float64).mean(), **{name: pl.col(name).first() for name in MEASURES}
    )
    parts = shares.partition_by("method", "condition", as_dict=True)
    return {(method, condition): rows.sort(KEYS) for (method, condition), rows in parts.items()}


def _part(rows: pl.DataFrame, *, by_config: bool) -> _Part:
    """`by_config`: mean over configs instead of decisions."""
    cell, cluster = (rows[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("config", "cluster"))
    sums = sums_of(cell, cluster, rows["correct"].to_numpy())
    clusters, cells = sums.won.shape
    return _Part(sums, separate_strata(range(cells)) if by_config else [list(range(cells))], rows.height, clusters)


def _values(source: Resampled, strata: Strata) -> Array:
    return mean_of([source.pooled(cells) for cells in strata])


def _accuracy(part: _Part) -> Estimate:
    linearized = linearize(part.sums)
    return linearized.share(_values(linearized.sources[0], part.strata), part.strata, part.n, part.clusters)


def _gain(first: _Part, second: _Part) -> Estimate:
    linearized = linearize(first.sums, second.sums)
    one, other = (_values(source, first.strata) for source in linearized.sources)
    return linearized.difference(other - one, first.strata, first.n, first.clusters)


def _over_seeds(seeds: Sequence[pl.DataFrame], *, by_config: bool) -> Estimate:
    """Return the standard deviation of the accuracy over seeds; None for a single seed."""
    right = pl.col("correct").cast(pl.Float64).mean()
    means = [
        rows.group_by("config", maintain_order=True).agg(right) if by_config else rows.select(right) for rows in seeds
    ]
    accuracies = np.asarray([mean["correct"].sort().mean() for mean in means], np.float64)
    return Estimate(float(accuracies.std(ddof=1)) if len(accuracies) > 1 else None, n=len(accuracies))


def _by_measure(items: pl.DataFrame, name: str, measure: str) -> Numbers:
    parts = _by_condition(items.filter(pl.col(measure).is_not_null()))
    for method in dict.fromkeys(method for method, _ in parts):
        own = {condition: rows for (name, condition), rows in parts.items() if name == method}
        values = next(iter(own.values()))[measure].cast(pl.Float64).to_numpy()
        for place, inside in enumerate(_bins(values), start=1):
            key = MetricKey("accuracy", set=name, method=method, measure=measure, bin=place)
            for metric, value in (("least", values[inside].min()), ("most", values[inside].max())):
                yield key._replace(metric=metric), Estimate(float(value), n=int(inside.sum()))
            binned = {name: _part(rows.filter(pl.Series(inside)), by_config=False) for name, rows in own.items()}
            for condition, part in binned.items():
                yield key._replace(condition=condition), _accuracy(part)
            for first, second in COMPARED:
                if {first, second} <= own.keys():
                    gain = _gain(binned[first], binned[second])
                    yield key._replace(metric="gain", condition=f"{second}-{first}"), gain


def _bins(values: Array) -> list[NDArray[np.bool_]]:
    """Return masks of quantile bins, lowest first; equal values share a bin."""
    number = max(1, min(BINS, len(values) // MIN_DECISIONS))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, number + 1)[1:-1], method="inverted_cdf"))
    bins = np.searchsorted(edges, values, side="left")
    return [bins == number for number in np.unique(bins)]


_WHOLE = ("set method condition", "config set method condition")
_BINS = ("set method condition measure bin",)
METRICS = (
    Metric("seeds_sd", "difference", "Standard deviation of the accuracy over seeds.", _WHOLE),
    Metric("gain", "difference", "Accuracy under a condition minus that under another.", (*_WHOLE, *_BINS)),
    Metric("p_value", "p-value", "p-value of no gain, two-sided, from the interval.", _WHOLE[:1]),
    Metric("p_holm", "p-value", "The same, adjusted over methods.", _WHOLE[:1]),
    Metric("least", "number", "Smallest value of a bin of user context.", ("set method measure bin",)),
    Metric("most", "number", "Largest value of a bin of user context.", ("set method measure bin",)),
)
