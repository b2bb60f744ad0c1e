"""Best-of-k curves: the judged outcome and the predicted reward of the selected answers, by k.

Every number is a mean over items, within a config and then over configs as the benchmark defines it, with a clustered
interval (by prompt or user). Differences are paired by item.

The best candidate by reward is selected of the first k, and in expectation over all sets of k. A missing reward or
value is NaN; a candidate without a reward is never selected.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import comb, inf
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of, resample, sums_of
from pluralbench_measures.intervals import linearize

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.metric import START, Metric, Numbers

CHANGE_TO_LARGEST = "since"
"""Metric of a model and a k: the outcome at the largest k minus that at k. Only `since_best` is reported from it."""
MIN_CANDIDATES = 3  # of an item, for a rank correlation


Key = tuple[str | None, str, int | None]
"""Reward model (None: the policy itself), metric, and k of best-of-k."""


class OutcomeTable(NamedTuple):
    """Rewards and outcomes by item, with items and candidates in one order; a missing value is NaN.

    Attributes:
        config: Number of each item's config, from 0. Shape (items,).
        cluster: Number of each item's cluster, from 0. Shape (items,).
        configs: Names of the configs.
        rewards: Rewards of the candidates, by reward model. Shape (items, candidates).
        values: Outcomes of the candidates. Shape (items, candidates). None if not every candidate was judged or a
            conversation has several turns: an expectation over subsets then does not exist.
        selected: Outcome of the best of the first k candidates, by reward model and k; of a conversation the mean over
            its turns. Shape (items,).
    """

    config: NDArray[np.int64]
    cluster: NDArray[np.int64]
    configs: Sequence[str]
    rewards: Mapping[str, Array]
    values: Array | None
    selected: Mapping[tuple[str, int], Array]


def curve_numbers(table: OutcomeTable, sizes: Sequence[int], *, by_config: bool) -> Numbers:
    """Compute all best-of-k numbers for ascending values of k, with a mean over configs or over items."""
    columns = {key: values for key, values in _columns(table, sizes) if not np.isnan(values).all()}
    if not columns:
        return
    means = _Means(table, columns, by_config=by_config)
    for key in columns:
        if key[1] != CHANGE_TO_LARGEST:
            yield from means.numbers("policy" if key[0] is None else "model", key)
    for model in table.rewards:
        changes: dict[int, Key] = {k: (model, CHANGE_TO_LARGEST, k) for k in sizes}
        if all(key in columns for key in changes.values()):
            # The best k is chosen on the same data, which favors it; its interval holds for this k.
            best = min(sizes, key=lambda k: float(means.overall[changes[k]][0]))
            key = changes[best]
            yield MetricKey("since_best", model=model, k=best), means.estimate(means.overall[key], key)


def level_numbers(start: OutcomeTable, end: OutcomeTable, *, by_config: bool) -> Numbers:
    """Compute a policy's mean outcome, that of the initial policy, and their difference, on the same items."""
    levels: dict[Key, Array] = {(None, "outcome", None): _level(end), (START, "outcome", None): _level(start)}
    columns = {key: values for key, values in levels.items() if not np.isnan(values).all()}
    means = _Means(end, columns, by_config=by_config)
    for key in columns:
        yield from means.numbers("policy", key)
    if len(columns) == len(levels):
        after, before = means.overall.values()
        yield MetricKey("outcome_gain"), means.estimate(after - before, (None, "outcome", None))


def mean_numbers(
    items: pl.DataFrame,
    columns: Mapping[Key, Array],
    dimension: str,
    *,
    by_config: bool,
    within: tuple[float, float] = (-inf, inf),
) -> Numbers:
    """Compute the means of columns of shape (items,), overall and by config, with intervals bounded by `within`.

    The first part of a column's key is a value of `dimension`.
    """
    config, configs = index_names(items["config"])
    cluster, _ = index_names(items["cluster"])
    means = _Means(OutcomeTable(config, cluster, configs, {}, None, {}), columns, by_config=by_config, within=within)
    for key in columns:
        yield from means.numbers(dimension, key)


def _columns(table: OutcomeTable, sizes: Sequence[int]) -> Iterator[tuple[Key, Array]]:
    level = _level(table) if table.values is not None or table.selected else None
    if level is not None:
        yield (None, "outcome", None), level
    for model, rewards in table.rewards.items():
        outcomes: dict[int, Array] = {}
        for k in sizes:
            weights = [weights_of_best(row, k) for row in rewards]
            reward = _expected(rewards, weights)
            yield (model, "reward", k), reward
            yield (model, "promised", k), (reward - _means(rewards)) / _deviation(rewards)
            first = table.selected.get((model, k))
            if first is not None:
                yield (model, "outcome_of_first", k), first
            if table.values is not None:
                outcomes[k] = _expected(table.values, weights)
                yield (model, "realized", k), (outcomes[k] - _means(table.values)) / _deviation(table.values)
            elif first is not None:
                outcomes[k] = first
        for k, value in outcomes.items():
            yield (model, "outcome", k), value
            if sizes[-1] in outcomes:
                yield (model, CHANGE_TO_LARGEST, k), outcomes[sizes[-1]] - value
        if level is not None and sizes[-1] in outcomes:
            yield (model, "outcome_gain", sizes[-1]), outcomes[sizes[-1]] - level
        if table.values is not None:
            pairs = zip(rewards, table.values, strict=True)
            yield (model, "rank_correlation", None), np.array([_rank_correlation(row, values) for row, values in pairs])


def outcomes_at(table: OutcomeTable, models: Sequence[str], k: int, *, by_config: bool, seed: int) -> Array:
    """Compute best-of-k outcomes by reward model, as measured (row 0) and resampled. Shape (1 + resamples, models)."""
    columns = {key: values for key, values in _columns(table, (k,)) if key[1:] == ("outcome", k)}
    means = _overall(table, columns, resample([_sums(table, columns)], seed)[0], by_config=by_config)
    return np.stack([means[model, "outcome", k] for model in models], axis=1)


def policy_levels(tables: Sequence[OutcomeTable], *, by_config: bool, seed: int) -> Array:
    """Compute mean outcomes of policies on the same items in one order. Shape (1 + resamples, policies)."""
    columns: dict[Key, Array] = {(str(number), "outcome", None): _level(table) for number, table in enumerate(tables)}
    means = _overall(tables[0], columns, resample([_sums(tables[0], columns)], seed)[0], by_config=by_config)
    return np.stack(list(means.values()), axis=1)


def _level(table: OutcomeTable) -> Array:
    """Return the mean outcome of a policy's candidates by item, or the first one's if not all were judged."""
    if table.values is not None:
        return _means(table.values)
    # The best of one candidate is the same for all reward models; NaN if it has no reward or was not judged.
    firsts = [values for (_, k), values in table.selected.items() if k == 1]
    return np.asarray(np.fmax.reduce(firsts or [np.full(len(table.config), np.nan)]))


def _overall(
    table: OutcomeTable, columns: Mapping[Key, Array], source: Resampled, *, by_config: bool
) -> dict[Key, Array]:
    """Compute the overall mean of each column in each row of sums. Configs without a value are left out."""
    width, means = len(table.configs), {}
    for number, key in enumerate(columns):
        cells = list(range(number * width, (number + 1) * width))
        parts = [[cell] for cell in cells if source.decisions([cell])] if by_config else [cells]
        means[key] = mean_of([source.pooled(part) for part in parts])
    return means


class _Means:
    """Means of columns over items, by config and overall, with intervals; `overall` has them in each perturbed row."""

    def __init__(
        self,
        table: OutcomeTable,
        columns: Mapping[Key, Array],
        *,
        by_config: bool,
        within: tuple[float, float] = (-inf, inf),
    ) -> None:
        self._configs, self._by_config, self._within = table.configs, by_config, within
        self._index = {key: number for number, key in enumerate(columns)}
        self._linearized = linearize(_sums(table, columns))
        self._source = self._linearized.sources[0]
        self.overall = _overall(table, columns, self._source, by_config=by_config)

    def estimate(self, values: Array, key: Key, config: int | None = None) -> Estimate:
        """Return the estimate with its interval for values computed from the means of `key`."""
        width = len(self._configs)
        configs = range(width) if config is None else [config]
        cells = [self._index[key] * width + number for number in configs]
        by_config = [range(number, len(self._index) * width, width) for number in configs]
        strata = by_config if self._by_config else [[cell for inner in by_config for cell in inner]]
        n, clusters = self._source.decisions(cells), self._source.clusters(cells)
        return self._linearized.estimate(values, strata, n, clusters, self._within)

    def numbers(self, dimension: str, key: Key) -> Numbers:
        """Yield the overall number and that of each config; the first part of the key is this dimension."""
        model, metric, k = key
        name = MetricKey(metric, k=k).by(dimension, model)
        yield name, self.estimate(self.overall[key], key)
        for number, config in enumerate(self._configs):
            values = self._source.pooled([self._index[key] * len(self._configs) + number])
            yield name._replace(config=config), self.estimate(values, key, number)


def _sums(table: OutcomeTable, columns: Mapping[Key, Array]) -> Sums:
    """Sum each column by cluster and config; cells are all configs of the first column, then of the next."""
    width = len(table.configs)
    values = np.stack(list(columns.values()))
    column, item = np.nonzero(~np.isnan(values))
    shape = (int(table.cluster.max(initial=-1)) + 1, len(columns) * width)
    cell = column * width + table.config[item]
    return sums_of(cell.astype(np.int64), table.cluster[item], values[column, item], shape=shape)


def _means(values: Array) -> Array:
    counts = (~np.isnan(values)).sum(1)
    return np.asarray(np.divide(np.nansum(values, axis=1), counts, out=np.full(len(values), np.nan), where=counts > 0))


def _expected(values: Array, weights: Sequence[Array]) -> Array:
    return np.array([expected_value(row, weight) for row, weight in zip(values, weights, strict=True)])


def _deviation(values: Array) -> float:
    """Return the pooled standard deviation within items; NaN if it is 0."""
    several = values[(~np.isnan(values)).sum(1) > 1]
    if not len(several):
        return float("nan")
    deviation = float(np.sqrt(np.sort(np.nanvar(several, axis=1, ddof=1)).mean()))
    return deviation or float("nan")


def _rank_correlation(rewards: Array, values: Array) -> float:
    """Return Spearman's rank correlation of an item's candidates; NaN if either side is constant."""
    present = ~np.isnan(rewards) & ~np.isnan(values)
    if present.sum() < MIN_CANDIDATES or len(set(rewards[present])) == 1 or len(set(values[present])) == 1:
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(rewards[present], values[present]).statistic)


def candidate_arrays(
    candidates: pl.DataFrame, rewards: pl.DataFrame, outcomes: pl.DataFrame | None, models: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, Array], Array | None]:
    """Return the items of the first turn, and rewards and outcomes of their candidates. Shape (items, candidates)."""
    first = candidates.filter(turn=0)
    items = first.select("config", "id", "cluster").unique(maintain_order=True).with_row_index("item")
    count = int(first["sample"].to_numpy().max()) + 1

    def matrix(frame: pl.DataFrame, column: str) -> Array:
        array = np.full((items.height, count), np.nan)
        rows = frame.filter(turn=0).join(items, on=["config", "id"], maintain_order="left")
        array[rows["item"].to_numpy(), rows["sample"].to_numpy()] = rows[column].cast(pl.Float64).to_numpy()
        return array

    by_model = {model: matrix(rewards.filter(model=model), "reward") for model in models}
    return items, by_model, None if outcomes is None else matrix(outcomes, "value")


def index_names(names: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """Number names from 0 in the order in which they occur; return the numbers and the distinct names."""
    unique = names.unique(maintain_order=True)
    return names.replace_strict(unique, range(len(unique)), return_dtype=pl.Int64).to_numpy(), unique.to_list()


_BEST = ("model k", "config model k")
_OF_POLICY = ("", "config", "policy", "config policy")
METRICS = (
    Metric("outcome", "number", "Mean outcome of a policy's own answers, or of the best of k.", (*_OF_POLICY, *_BEST)),
    Metric("outcome_of_first", "number", "Mean outcome of the best of the first k candidates.", _BEST),
    Metric("outcome_gain", "number", "Outcome minus that of the initial policy, or the policy's own.", ("", *_BEST)),
    Metric("reward", "number", "Mean reward of the best of k: the reward model's own estimate.", _BEST),
    Metric("promised", "number", "Gain of the reward, in standard deviations within prompts.", _BEST),
    Metric("realized", "number", "Gain of the outcome, in standard deviations within prompts.", _BEST),
    Metric("since_best", "number", "Outcome of the largest k minus that of this k, the best one.", ("model k",)),
    Metric(
        "rank_correlation", "correlation", "Rank correlation of reward and outcome, mean.", ("model", "config model")
    ),
)


def best_of_first(rewards: Array, k: int) -> int | None:
    """Return the index of the highest reward among the first k candidates.

    The first of equal rewards wins, as in the code of Personalized RewardBench. None if no candidate has a reward.
    """
    first = rewards[:k]
    return None if np.isnan(first).all() else int(np.nanargmax(first))


def weights_of_best(rewards: Array, k: int) -> Array:
    """Return the probability of each candidate to be the best of k drawn without replacement. Shape (candidates,).

    Ties are broken at random. Candidates without a reward are not drawn and get weight 0; if fewer than k remain, all
    of them are drawn. The mean of a value under these weights is the unbiased estimate of its expectation under
    best-of-k, since it is the mean over all subsets of size k. All weights are 0 if no candidate has a reward.
    """
    weights = np.zeros(len(rewards))
    valid = np.flatnonzero(~np.isnan(rewards))
    count = len(valid)
    if not count:
        return weights
    k = min(k, count)
    ascending = valid[np.argsort(rewards[valid], kind="stable")]
    # A candidate with `below` lower rewards is the best of comb(below, k - 1) subsets. Divided as integers, as these
    # numbers may be above the largest float.
    chances = np.array([comb(below, k - 1) / comb(count, k) for below in range(count)])
    _, ties = np.unique(rewards[ascending], return_inverse=True)
    weights[ascending] = (np.bincount(ties, chances) / np.bincount(ties))[ties]
    return weights


def expected_value(values: Array, weights: Array) -> float:
    """Return the weighted mean of the values without NaN; NaN if no value has a weight."""
    used = ~np.isnan(values) & (weights > 0)
    return float(np.average(values[used], weights=weights[used])) if used.any() else float("nan")
