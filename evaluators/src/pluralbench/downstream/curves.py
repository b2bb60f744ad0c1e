"""Best-of-k as curves: what a policy gains by a reward model, and what the reward model says that it gains.

Every number is a mean over items, within a config and then over configs as the benchmark has it, with an interval that
takes clusters (prompts or users) as drawn. Differences are item by item.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of, resample, sums_of
from pluralbench_measures.intervals import perturb

from pluralbench.downstream.selection import expected_value, weights_of_best
from pluralbench.results.downstream import START
from pluralbench.results.metrics_frame import Place

CHANGE_TO_LARGEST = "since"
"""Of a model and a k: what the largest k adds to its outcome. No number of its own: see `since_best`."""
LEAST = 3  # candidates of an item between which a rank correlation says something


Key = tuple[str | None, str, int | None]
"""A reward model (None for the policy itself), a metric, and of how many the best is taken."""


class OutcomeTable(NamedTuple):
    """What is known of each item. Items and samples are in the same order everywhere; NaN is what is missing.

    config, cluster: of each item, index_names from 0. rewards: of the candidates by reward model, [items, candidates].
    values: of the judge, [items, candidates]; None where not every candidate was judged, or a conversation has several
    turns, so that there is no expectation over subsets. selected: by reward model and k, the value of what is the best
    of the first k, [items]; the mean over the turns of a conversation.
    """

    config: NDArray[np.int64]
    cluster: NDArray[np.int64]
    configs: Sequence[str]
    rewards: Mapping[str, Array]
    values: Array | None
    selected: Mapping[tuple[str, int], Array]


def curve_numbers(table: OutcomeTable, sizes: Sequence[int], *, by_config: bool) -> Iterator[tuple[Place, Estimate]]:
    """All numbers of best-of-k at their places; see `pluralbench.results.metrics_frame`.

    by_config: the overall number is the unweighted mean over configs, else over all items.
    """
    columns = {key: values for key, values in _columns(table, sizes) if not np.isnan(values).all()}
    if not columns:
        return
    means = _Estimates(table, columns, by_config=by_config)
    for key in columns:
        if key[1] != CHANGE_TO_LARGEST:
            yield from means.places("policy" if key[0] is None else "best-of-n", key)
    for model in table.rewards:
        yield from _changes(means, model, sizes)


def level_numbers(start: OutcomeTable, end: OutcomeTable, *, by_config: bool) -> Iterator[tuple[Place, Estimate]]:
    """The level of a policy, what it was at the start, and the difference, on the same items in the same order."""
    levels: dict[Key, Array] = {(None, "outcome", None): _level(end), (START, "outcome", None): _level(start)}
    columns = {key: values for key, values in levels.items() if not np.isnan(values).all()}
    means = _Estimates(end, columns, by_config=by_config)
    for key in columns:
        yield from means.places("policy", key)
    if len(columns) == len(levels):
        after, before = (means.overall(key) for key in levels)
        yield Place("policy", "gain"), means.estimate(after - before, (None, "outcome", None))


def mean_numbers(
    config: NDArray[np.int64],
    cluster: NDArray[np.int64],
    configs: Sequence[str],
    columns: Mapping[Key, Array],
    group: str,
    *,
    by_config: bool,
    within: tuple[float, float] = (-inf, inf),
) -> Iterator[tuple[Place, Estimate]]:
    """The means of some columns of one value an item, overall and by config.

    config, cluster, configs: see `OutcomeTable`. within: the least and the largest that a value can be.
    """
    means = _Estimates(
        OutcomeTable(config, cluster, configs, {}, None, {}), columns, by_config=by_config, within=within
    )
    for key in columns:
        yield from means.places(group, key)


def _columns(table: OutcomeTable, sizes: Sequence[int]) -> Iterator[tuple[Key, Array]]:
    """A value for each item, NaN where it has none.

    Differences are taken item by item, so that both sides are of the same items: of a conversation the policy, a model,
    and a model at another k may each lack the value of some turn.
    """
    level = _level(table) if table.values is not None or table.selected else None
    if level is not None:
        yield (None, "outcome", None), level
    for model, rewards in table.rewards.items():
        outcomes: dict[int, Array] = {}
        for k in sizes:
            weights = [weights_of_best(own, k) for own in rewards]
            reward = _expected(rewards, weights)
            yield (model, "reward", k), reward
            yield (model, "promised", k), (reward - _means(rewards)) / _deviation(rewards)
            first = table.selected.get((model, k))
            if first is not None:
                yield (model, "outcome_of_first", k), first
            if table.values is not None:
                outcomes[k] = _expected(table.values, weights)
                yield (model, "realised", k), (outcomes[k] - _means(table.values)) / _deviation(table.values)
            elif first is not None:
                outcomes[k] = first
        for k, value in outcomes.items():
            yield (model, "outcome", k), value
            if sizes[-1] in outcomes:
                yield (model, CHANGE_TO_LARGEST, k), outcomes[sizes[-1]] - value
        if level is not None and sizes[-1] in outcomes:
            yield (model, "gain", sizes[-1]), outcomes[sizes[-1]] - level
        if table.values is not None:
            pairs = zip(rewards, table.values, strict=True)
            yield (model, "agreement", None), np.array([_rank_correlation(own, values) for own, values in pairs])


def outcomes_at(table: OutcomeTable, models: Sequence[str], k: int, *, by_config: bool, seed: int) -> Array:
    """The outcome of the best of k by each reward model, as it is and in each resample: [1 + resamples, models]."""
    columns = {key: values for key, values in _columns(table, (k,)) if key[1:] == ("outcome", k)}
    means = _resampled(table, columns, by_config=by_config, seed=seed)
    return np.stack([means.overall((model, "outcome", k)) for model in models], axis=1)


def policy_levels(tables: Sequence[OutcomeTable], *, by_config: bool, seed: int) -> Array:
    """The levels of some policies on the same items in one order: [1 + resamples, policies]."""
    columns: dict[Key, Array] = {(str(number), "outcome", None): _level(table) for number, table in enumerate(tables)}
    means = _resampled(tables[0], columns, by_config=by_config, seed=seed)
    return np.stack([means.overall(key) for key in columns], axis=1)


def _level(table: OutcomeTable) -> Array:
    """What a policy's own candidates are worth, [items]; of several turns, or where few were judged, its first ones."""
    if table.values is not None:
        return _means(table.values)
    # The best of the first one is the same, whoever rewards it, and missing where it has no reward or nobody judged it.
    firsts = [values for (_, k), values in table.selected.items() if k == 1]
    return np.asarray(np.fmax.reduce(firsts or [np.full(len(table.config), np.nan)]))


class _Means:
    """Means over items, by config and overall, in each row of what is made of their sums."""

    def __init__(self, table: OutcomeTable, columns: Mapping[Key, Array], drawn: Resampled, *, by_config: bool) -> None:
        self._configs, self._by_config = table.configs, by_config
        self._place = {key: number for number, key in enumerate(columns)}
        self._drawn = drawn

    def __contains__(self, key: Key) -> bool:
        return key in self._place

    def overall(self, key: Key) -> Array:
        """The overall mean, [rows]. Configs without a value are left out."""
        leaves = self._leaves(key)
        if not self._by_config:
            return self._drawn.pooled(leaves)
        return mean_of([self._drawn.pooled([leaf]) for leaf in leaves if self._drawn.decisions([leaf])])

    def _leaves(self, key: Key) -> list[int]:
        width = len(self._configs)
        return [self._place[key] * width + number for number in range(width)]


class _Estimates(_Means):
    """The means with their intervals."""

    def __init__(
        self,
        table: OutcomeTable,
        columns: Mapping[Key, Array],
        *,
        by_config: bool,
        within: tuple[float, float] = (-inf, inf),
    ) -> None:
        self._within = within
        self._tilted = perturb(_sums(table, columns))
        super().__init__(table, columns, self._tilted.sources[0], by_config=by_config)

    def estimate(self, values: Array, key: Key, config: int | None = None) -> Estimate:
        """What was made of the means, over as many items as a mean has."""
        width, several = len(self._configs), len(self._place)
        by_config = [range(number, several * width, width) for number in range(width)]
        leaves = self._leaves(key)
        if config is not None:
            leaves, by_config = [leaves[config]], [by_config[config]]
        strata = by_config if self._by_config else [[leaf for inner in by_config for leaf in inner]]
        n, clusters = self._drawn.decisions(leaves), self._drawn.clusters(leaves)
        return self._tilted.estimate(values, strata, n, clusters, self._within)

    def places(self, group: str, key: Key) -> Iterator[tuple[Place, Estimate]]:
        """The overall number and that of each config."""
        model, metric, k = key
        subset = None if k is None else str(k)
        yield Place(group, metric, None, model, subset), self.estimate(self.overall(key), key)
        for number, config in enumerate(self._configs):
            values = self._drawn.pooled([self._leaves(key)[number]])
            yield Place(group, metric, config, model, subset), self.estimate(values, key, number)


def _resampled(table: OutcomeTable, columns: Mapping[Key, Array], *, by_config: bool, seed: int) -> _Means:
    return _Means(table, columns, resample(_sums(table, columns), seed), by_config=by_config)


def _sums(table: OutcomeTable, columns: Mapping[Key, Array]) -> Sums:
    """The sums of each column by cluster and config; the leaves are the configs of the first column, then the next."""
    width = len(table.configs)
    values = np.stack(list(columns.values()))
    column, item = np.nonzero(~np.isnan(values))
    shape = (int(table.cluster.max(initial=-1)) + 1, len(columns) * width)
    leaf = column * width + table.config[item]
    return sums_of(leaf.astype(np.int64), table.cluster[item], values[column, item], shape=shape)


def _changes(means: _Estimates, model: str, sizes: Sequence[int]) -> Iterator[tuple[Place, Estimate]]:
    """What is lost at the largest k against the best k."""
    if any((model, CHANGE_TO_LARGEST, k) not in means for k in sizes):
        return
    # The k that is best here: chosen by the same data, which favours it, so its interval is by the same k.
    lost = {k: means.overall((model, CHANGE_TO_LARGEST, k)) for k in sizes}
    best = min(sizes, key=lambda k: float(lost[k][0]))
    yield (
        Place("best-of-n", "since_best", None, model, str(best)),
        means.estimate(lost[best], (model, CHANGE_TO_LARGEST, best)),
    )


def _means(values: Array) -> Array:
    """The mean of each row's values that are there, NaN where none is: [rows, columns] to [rows]."""
    there = ~np.isnan(values)
    counts = there.sum(1)
    return np.asarray(np.divide(np.nansum(values, axis=1), counts, out=np.full(len(values), np.nan), where=counts > 0))


def _expected(values: Array, weights: Sequence[Array]) -> Array:
    return np.array([expected_value(own, weight) for own, weight in zip(values, weights, strict=True)])


def _deviation(values: Array) -> float:
    """The standard deviation of values within items, pooled; NaN where it is 0."""
    several = values[(~np.isnan(values)).sum(1) > 1]
    if not len(several):
        return float("nan")
    found = float(np.sqrt(np.nanvar(several, axis=1, ddof=1).mean()))
    return found or float("nan")


def _rank_correlation(rewards: Array, values: Array) -> float:
    """Spearman's rank correlation of an item's candidates; NaN where either side has no order."""
    there = ~np.isnan(rewards) & ~np.isnan(values)
    if there.sum() < LEAST or len(set(rewards[there])) == 1 or len(set(values[there])) == 1:
        return float("nan")
    from scipy.stats import spearmanr  # noqa: PLC0415 - two seconds that `--help` saves

    return float(spearmanr(rewards[there], values[there]).statistic)


def candidate_arrays(
    candidates: pl.DataFrame, rewards: pl.DataFrame, outcomes: pl.DataFrame | None, models: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, Array], Array | None]:
    """The items of the first turn, and the rewards and values of their candidates, [items, candidates]."""
    first = candidates.filter(turn=0)
    items = first.select("config", "id", "cluster").unique(maintain_order=True).with_row_index("item")
    count = int(first["sample"].to_numpy().max()) + 1

    def filled(frame: pl.DataFrame, column: str) -> Array:
        array = np.full((items.height, count), np.nan)
        placed = frame.filter(turn=0).join(items, on=["config", "id"], maintain_order="left")
        array[placed["item"].to_numpy(), placed["sample"].to_numpy()] = placed[column].cast(pl.Float64).to_numpy()
        return array

    by_model = {model: filled(rewards.filter(model=model), "reward") for model in models}
    return items, by_model, None if outcomes is None else filled(outcomes, "value")


def index_names(names: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each name, from 0 in the order in which they come, and the names."""
    unique = names.unique(maintain_order=True).to_list()
    place = {name: number for number, name in enumerate(unique)}
    return np.array([place[name] for name in names], dtype=np.int64), unique
