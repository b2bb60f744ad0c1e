"""What a profile is worth to personalized reward models: accuracies with and without it, and their differences.

Accuracy is strict: a tie is wrong. Each decision counts as the share of the seeds that got it right, and intervals and
tests take users as drawn, so that they say how sure a number is about other users, not about other seeds; how far seeds
lie apart is a number of its own. The overall number of a set is the mean over its decisions, or the unweighted mean
over its configs, as its benchmark says.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of
from pluralbench_measures.intervals import Strata, tilt
from pluralbench_measures.paired import exchange, holm, p_value

from pluralbench.metrics.accuracy import apart, sums_by_leaf
from pluralbench.results.metrics_frame import Place

COMPARED = (("without", "with"), ("shuffled", "with"))
"""Pairs of conditions: the second is held against the first."""
MEASURES = ("posts", "words", "distance")
BINS, LEAST = 4, 8
"""Bins of equally many decisions, and how many decisions one has at the least."""
KEYS = ("config", "item", "pair", "cluster")
Numbers = Iterator[tuple[Place, Estimate]]


class _Part(NamedTuple):
    """The decisions of one method under one condition. by_config: the mean over configs rather than decisions."""

    rows: pl.DataFrame
    by_config: bool


def personalize_numbers(items: pl.DataFrame, by_config: Mapping[str, bool]) -> Numbers:
    """All numbers of some items (`PERSONALIZE_ITEMS`): see `pluralbench.results.metrics_frame`.

    by_config: the sets, and whether their overall number is the mean over configs.
    """
    for name, mean in by_config.items():
        own = items.filter(pl.col("set") == name)
        configs = own["config"].unique(maintain_order=True).to_list()
        yield from _set_numbers(own, name, None, by_config=mean)
        for config in configs if len(configs) > 1 else []:
            yield from _set_numbers(own.filter(pl.col("config") == config), name, config, by_config=mean)
        for measure in MEASURES:
            yield from _by_measure(own, f"{name} by {measure}", measure)


def _set_numbers(items: pl.DataFrame, group: str, config: str | None, *, by_config: bool) -> Numbers:
    """Accuracies of some items, their spread over seeds, what is gained, and the tests of that."""
    parts = {key: _Part(rows, by_config) for key, rows in _by_condition(items).items()}
    seeds = items.partition_by("method", "condition", "seed", as_dict=True)
    for (method, condition), part in parts.items():
        yield Place(group, "accuracy", config, method, condition), _accuracy(part)
        own = [rows for key, rows in seeds.items() if key[:2] == (method, condition)]
        yield Place(group, "seeds_sd", config, method, condition), _over_seeds(own, by_config=by_config)
    methods = list(dict.fromkeys(method for method, _ in parts))
    for first, second in COMPARED:
        compared = [name for name in methods if (name, first) in parts and (name, second) in parts]
        tests = []
        for method in compared:
            sides = parts[method, first], parts[method, second]
            tests.append(_test(*sides))
            yield Place(group, "gain", config, method, f"{second}-{first}"), _gain(*sides)
        for metric, values in (("p_value", tests), ("p_holm", holm(tests) if len(tests) > 1 else tests)):
            for method, p in zip(compared, values, strict=True):
                yield Place(group, metric, config, method, f"{second}-{first}"), Estimate(p)


def _by_condition(items: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    """The decisions by method and condition, each once, with the share of the seeds that got it right."""
    shares = items.group_by("method", "condition", *KEYS, maintain_order=True).agg(
        correct=pl.col("correct").cast(pl.Float64).mean(), **{name: pl.col(name).first() for name in MEASURES}
    )
    found = shares.with_columns(subset=pl.lit(None, pl.String)).partition_by("method", "condition", as_dict=True)
    return {(method, condition): rows.sort(KEYS) for (method, condition), rows in found.items()}


def _sums(part: _Part, leaves: Sequence[tuple[str, None]]) -> Sums:
    return sums_by_leaf(part.rows, leaves, part.rows["correct"])


def _leaves(part: _Part) -> list[tuple[str, None]]:
    return [(config, None) for config in part.rows["config"].unique(maintain_order=True)]


def _strata(part: _Part, leaves: Sequence[tuple[str, None]]) -> Strata:
    places = range(len(leaves))
    return apart(places) if part.by_config else [list(places)]


def _values(source: Resampled, strata: Strata) -> Array:
    return mean_of([source.pooled(leaves) for leaves in strata])


def _accuracy(part: _Part) -> Estimate:
    leaves = _leaves(part)
    strata, tilted = _strata(part, leaves), tilt(_sums(part, leaves))
    return tilted.share(_values(tilted.sources[0], strata), strata, *_counts(part))


def _gain(first: _Part, second: _Part) -> Estimate:
    """The second less the first, on the same decisions."""
    leaves = _leaves(first)
    strata, tilted = _strata(first, leaves), tilt(_sums(first, leaves), _sums(second, leaves))
    one, other = (_values(source, strata) for source in tilted.sources)
    return tilted.difference(other - one, strata, *_counts(first))


def _test(first: _Part, second: _Part) -> float | None:
    """The p-value of no difference, two-sided, by exchanging the two within users."""
    leaves = _leaves(first)
    strata, exchanged = _strata(first, leaves), exchange(_sums(first, leaves), _sums(second, leaves), seed=0)
    one, other = (_values(source, strata) for source in exchanged)
    return p_value(other - one)


def _counts(part: _Part) -> tuple[int, int]:
    return part.rows.height, part.rows["cluster"].n_unique()


def _over_seeds(seeds: Sequence[pl.DataFrame], *, by_config: bool) -> Estimate:
    """The standard deviation of the accuracy over seeds, None of a single one."""
    right = pl.col("correct").cast(pl.Float64).mean()
    shares = [(rows.group_by("config").agg(right) if by_config else rows.select(right))["correct"] for rows in seeds]
    found = np.asarray([share.mean() for share in shares], np.float64)
    return Estimate(float(found.std(ddof=1)) if len(found) > 1 else None, n=len(found))


def _by_measure(items: pl.DataFrame, group: str, measure: str) -> Numbers:
    """Accuracies and gains by quantiles of how much is told, over the decisions for which that is known."""
    parts = _by_condition(items.filter(pl.col(measure).is_not_null()))
    for method in dict.fromkeys(method for method, _ in parts):
        own = {condition: rows for (name, condition), rows in parts.items() if name == method}
        binned = {name: _binned(rows, measure) for name, rows in own.items()}
        for place, rows in next(iter(binned.values())).items():
            for metric, value in (("least", rows[measure].min()), ("most", rows[measure].max())):
                yield Place(group, metric, None, method, str(place)), Estimate(float(value), n=rows.height)  # type: ignore[arg-type]
            for condition, bins in binned.items():
                found = _accuracy(_Part(bins[place], by_config=False))
                yield Place(group, "accuracy", None, method, f"{condition} {place}"), found
            for first, second in COMPARED:
                if {first, second} <= own.keys():
                    sides = (_Part(binned[name][place], by_config=False) for name in (first, second))
                    yield Place(group, "gain", None, method, f"{second}-{first} {place}"), _gain(*sides)


def _binned(rows: pl.DataFrame, measure: str) -> dict[int, pl.DataFrame]:
    """The decisions in bins of about equally many, the lowest first, from 1; equal values are in one bin."""
    number = max(1, min(BINS, rows.height // LEAST))
    values = rows[measure].cast(pl.Float64).to_numpy()
    edges = np.unique(np.quantile(values, np.linspace(0, 1, number + 1)[1:-1], method="inverted_cdf"))
    found = np.searchsorted(edges, values, side="left")
    return {place: rows.filter(pl.Series(found == one)) for place, one in enumerate(np.unique(found).tolist(), start=1)}
