"""Metrics of responses that are right or wrong, beside the accuracy: the benchmark's `metrics` names them.

- `style-matrix` (RM-Bench): accuracy by the styles of the right and the wrong response, which are their positions: 0
  concise, 1 detailed, 2 detailed with Markdown. `easy` are the pairs whose right response has the more elaborate style,
  `normal` those of one style, `hard` the others. Each number is the unweighted mean over sections.
- `reciprocal-rank` (RewardMATH): mean of 1 / rank of the best right response. Wrong responses with an equal or invalid
  score rank above it. `accuracy_with_ties` is the share of items whose right response no wrong one beats.
- `best-of-k` (PPE, correctness): accuracy of the highest-scored of k responses, of equal ones the first, averaged over
  `PERMUTATIONS` random orders, where a wrong response with an invalid score is above all others, and a right one is
  never right (`invalid` counts both); `max`, the mean over orders of the highest point of the curve; `loss`, the mean
  squared distance to the curve of an oracle; and `auc`, the area under the ROC curve over all responses, with scores
  scaled to 0 to 1 within an item (equal scores: 0.5). `max`, `loss` and `auc` have no interval.

Benchmarks with the rule `ties` also have `unpaired`, the number of prompts whose twin has no score.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, mean_of
from pluralbench_measures.intervals import perturb

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import sums_by_leaf
from pluralbench.metrics.credits import COUNTED, ITEM
from pluralbench.metrics.ties import unpaired
from pluralbench.results.metrics_frame import Numbers, Place

PERMUTATIONS = 100
LEVELS = {"easy": 1, "normal": 0, "hard": -1}
"""Sign of the difference of styles, right minus wrong, by level."""


def response_numbers(benchmark: Benchmark, decisions: pl.DataFrame, responses: pl.DataFrame | None) -> Numbers:
    """Yield the metrics that `benchmark.metrics` names.

    Args:
        benchmark: Description of the benchmark.
        decisions: Decisions as `pluralbench.data.decisions.decide` returns them.
        responses: Rows of `items.parquet`, one per response with `rank` and `score`. Default: without best of k.
    """
    ours = pl.col("config").is_in(sorted(benchmark.outside_overall)).not_()
    counted = decisions.filter(ours, pl.col("outcome").is_in(COUNTED))
    ties = [subset for subset in counted["subset"].unique() if benchmark.credit_of(subset) == "ties"]
    if ties:
        yield Place("overall", "unpaired"), Estimate(float(unpaired(counted.filter(pl.col("subset").is_in(ties)))))
    if "style-matrix" in benchmark.metrics and counted.height:
        yield from _style_matrix(benchmark, counted)
    if "reciprocal-rank" in benchmark.metrics and counted.height:
        yield from _reciprocal_rank(counted)
    if "best-of-k" in benchmark.metrics and responses is not None and "score" in responses.columns:
        for (config,), part in responses.filter(ours).partition_by("config", as_dict=True).items():
            yield from _best_of_k(str(config), part)


def _style_matrix(benchmark: Benchmark, counted: pl.DataFrame) -> Numbers:
    right, wrong = (counted[side].str.extract(r" (\d+)$").cast(pl.Int64) for side in ("chosen", "rejected"))
    style = pl.select(pl.format("{} against {}", right, wrong)).to_series()
    sign = (right - wrong).sign()
    level = sign.replace_strict({number: name for name, number in LEVELS.items()}, return_dtype=pl.String)
    section = counted["subset"].replace_strict(benchmark.section_of, default=None, return_dtype=pl.String)
    rows = counted.with_columns(config=section).filter(pl.col("config").is_not_null())
    inside = section.is_not_null()
    for group, names in (("level", level), ("style", style)):
        yield from _means(group, rows.with_columns(subset=names.filter(inside)), list(benchmark.sections))


def _means(group: str, rows: pl.DataFrame, sections: Sequence[str]) -> Numbers:
    """Yield the accuracy of each kind of pair in each section, and the unweighted mean over sections."""
    names = rows["subset"].unique().sort().to_list()
    leaves = [(section, name) for section in sections for name in names]
    perturbed = perturb(sums_by_leaf(rows, leaves, rows["outcome"] == "win"))
    source = perturbed.sources[0]
    for name in names:
        places = [place for place, leaf in enumerate(leaves) if leaf[1] == name]
        values = [source.pooled([place]) for place in places]
        size = source.decisions(places), source.clusters(places)
        yield Place(group, "accuracy", subset=name), perturbed.share(mean_of(values), [[p] for p in places], *size)
        for place, value in zip(places, values, strict=True):
            own = Place(group, "accuracy", section=leaves[place][0], subset=name)
            yield own, perturbed.share(value, [[place]], source.decisions([place]), source.clusters([place]))


def _reciprocal_rank(counted: pl.DataFrame) -> Numbers:
    above = (pl.col("outcome") != "win").sum()
    beaten = pl.col("outcome").is_in(["loss", "invalid"]).any()
    right = counted.group_by(*ITEM, "chosen", maintain_order=True).agg(above=above, beaten=beaten)
    items = right.group_by(ITEM, maintain_order=True).agg(
        reciprocal_rank=1 / (1 + pl.col("above").min()), accuracy_with_ties=(~pl.col("beaten")).any().cast(pl.Float64)
    )
    for metric in ("reciprocal_rank", "accuracy_with_ties"):
        yield Place("overall", metric), _mean(items, items[metric])


def _mean(items: pl.DataFrame, values: pl.Series) -> Estimate:
    """Estimate the mean over items of values from 0 to 1."""
    perturbed = perturb(sums_by_leaf(items.with_columns(config=pl.lit("all"), subset=None), [("all", None)], values))
    source = perturbed.sources[0]
    return perturbed.share(source.pooled([0]), [[0]], items.height, source.clusters([0]))


def _best_of_k(config: str, responses: pl.DataFrame) -> Numbers:
    counted = responses.filter(pl.col("outcome") != "dropped")
    items = counted.group_by(ITEM, maintain_order=True).agg(right=pl.col("rank") == 1, score="score")
    sizes = items["score"].list.len()
    if items.is_empty() or sizes.n_unique() > 1:
        return
    size = int(sizes[0])
    right = items["right"].explode().to_numpy().reshape(-1, size).astype(np.float64)
    scores = items["score"].cast(pl.List(pl.Float64)).explode().to_numpy().reshape(-1, size)
    valid = np.isfinite(scores)
    scores = np.where(valid, scores, np.where(right > 0, -np.inf, np.inf))
    curves = [_curve(right * valid, scores, order) for order in _orders(size)]
    oracle = [_curve(right, right, order) for order in _orders(size)]
    mean = np.mean(curves, axis=0)
    for k in sorted({*(2**power for power in range(size.bit_length())), size}):
        yield Place("best-of-k", "accuracy", config, subset=str(k)), _mean(items, pl.Series(mean[:, k - 1]))
    by_order = np.mean(curves, axis=1)  # shape (orders, k)
    numbers = {
        "max": float(by_order.max(1).mean()),
        "loss": float(((by_order - np.mean(oracle, axis=1)) ** 2).mean()),
        "auc": _auc(right, scores),
        "invalid": float((~valid).sum()),
    }
    for metric, value in numbers.items():
        yield Place("best-of-k", metric, config), Estimate(value, n=items.height)


def _orders(size: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    return (rng.permutation(size) for _ in range(PERMUTATIONS))


def _curve(right: Array, scores: Array, order: NDArray[np.int64]) -> Array:
    """Return whether the best of the first k responses is right, for each k. Shape (items, k)."""
    own = scores[:, order]
    highest = np.maximum.accumulate(own, axis=1)
    new = np.hstack([np.ones((len(own), 1), bool), own[:, 1:] > highest[:, :-1]])
    place = np.maximum.accumulate(np.where(new, np.arange(own.shape[1]), 0), axis=1)
    return np.take_along_axis(right[:, order], place, axis=1)


def _auc(right: Array, scores: Array) -> float:
    """Return the area under the ROC curve of scores that are scaled to 0 to 1 within items."""
    valid = np.isfinite(scores)
    low = scores.min(1, keepdims=True, where=valid, initial=np.inf)
    high = scores.max(1, keepdims=True, where=valid, initial=-np.inf)
    spread = high > low
    scaled = (scores - np.where(spread, low, 0)) / np.where(spread, high - low, 1)
    scaled = np.where(valid & ~spread, 0.5, scaled).ravel()
    positive = right.ravel() > 0
    n, m = int(positive.sum()), int((~positive).sum())
    ranks = pl.Series(scaled).rank("average").to_numpy()  # as scipy's `rankdata`, whose import takes two seconds
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m)) if n and m else float("nan")
