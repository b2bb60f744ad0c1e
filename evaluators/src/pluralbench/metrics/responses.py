"""Metrics of responses that are right or wrong, beside the accuracy: the benchmark's `metrics` names them.

- `style_accuracy` (RM-Bench): accuracy by the styles of the right and the wrong response, which are their positions: 0
  concise, 1 detailed, 2 detailed with Markdown. `easy` are the pairs whose right response has the more elaborate style,
  `normal` those of one style, `hard` the others. Each number is the unweighted mean over sections.
- `reciprocal_rank` (RewardMATH): mean of 1 / rank of the best right response. Wrong responses with an equal or invalid
  score rank above it. `accuracy_with_ties` is the share of items whose right response no wrong one beats.
- `best_of_k` (PPE, correctness): accuracy of the highest-scored of k responses, of equal ones the first, averaged over
  `PERMUTATIONS` random orders, where a wrong response with an invalid score is above all others, and a right one is
  never right (`invalid_responses` counts both); `max`, the mean over orders of the highest point of the curve; `loss`,
  the mean squared distance to the curve of an oracle; and `auc`, the area under the ROC curve over all responses, with
  scores scaled to 0 to 1 within an item (equal scores: 0.5). `max`, `loss` and `auc` have no interval.

Benchmarks with the rule `ties` also have `unpaired`, the number of prompts whose twin has no score.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, mean_of
from pluralbench_measures.intervals import linearize
from pluralbench_runs import plural

from pluralbench.data.column_types import COUNTED
from pluralbench.data.credits import subsets_by_credit
from pluralbench.data.credits.credit import ITEM
from pluralbench.data.credits.ties import TIES, unpaired
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import in_overall
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError
from pluralbench.metrics.accuracy import item_mean, sums_by_cell
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

PERMUTATIONS = 100
LEVELS = {"easy": 1, "normal": 0, "hard": -1}
"""Sign of the difference of styles, right minus wrong, by level."""


def _counted(decided: Decided) -> pl.DataFrame:
    return decided.decisions.filter(in_overall(decided.benchmark), pl.col("outcome").is_in(COUNTED))


def unpaired_numbers(decided: Decided) -> Numbers:
    """Yield the number of prompts of Ties without a twin, for benchmarks with the rule `ties`."""
    counted = _counted(decided)
    ties = subsets_by_credit(decided.benchmark, counted).get(TIES)
    if ties is not None:
        yield MetricKey("unpaired"), Estimate(float(unpaired(ties)))


def check_styles(items: pl.DataFrame, where: str) -> None:
    """Check that items have a right and a wrong response of each style."""
    right, wrong = (pl.col("rank").list.count_matches(rank) for rank in (1, 2))
    uneven = items.filter(right != wrong)["id"].to_list()
    if uneven:
        raise DataError(
            f"{where} has {plural(len(uneven), 'item')} with more right than wrong responses or "
            f"fewer (ids {first_ids(uneven)}); the style matrix needs one of each style."
        )


def style_numbers(decided: Decided) -> Numbers:
    """Yield the accuracy by the styles of the responses."""
    benchmark, counted = decided.benchmark, _counted(decided)
    if counted.is_empty():
        return
    right, wrong = (counted[side].str.extract(r" (\d+)$").cast(pl.Int64) for side in ("chosen", "rejected"))
    style = pl.select(pl.format("{} against {}", right, wrong)).to_series()
    sign = (right - wrong).sign()
    level = sign.replace_strict({number: name for name, number in LEVELS.items()}, return_dtype=pl.String)
    section = counted["subset"].replace_strict(benchmark.section_of, default=None, return_dtype=pl.String)
    rows = counted.with_columns(config=section).filter(pl.col("config").is_not_null())
    inside = section.is_not_null()
    for dimension, names in (("level", level), ("style", style)):
        yield from _means(dimension, rows.with_columns(subset=names.filter(inside)), list(benchmark.sections))


def _means(dimension: str, rows: pl.DataFrame, sections: Sequence[str]) -> Numbers:
    names = rows["subset"].unique().sort().to_list()
    cells = [(section, name) for section in sections for name in names]
    linearized = linearize(sums_by_cell(rows, cells, rows["outcome"] == "win"))
    source = linearized.sources[0]
    for name in names:
        places = [place for place, cell in enumerate(cells) if cell[1] == name]
        values = [source.pooled([place]) for place in places]
        size = source.decisions(places), source.clusters(places)
        key = MetricKey("style_accuracy").by(dimension, name)
        yield key, linearized.share(mean_of(values), [[p] for p in places], *size)
        for place, value in zip(places, values, strict=True):
            yield (
                key._replace(section=cells[place][0]),
                linearized.share(value, [[place]], source.decisions([place]), source.clusters([place])),
            )


def rank_numbers(decided: Decided) -> Numbers:
    """Yield the mean reciprocal rank of the right response, and the accuracy if ties are right."""
    counted = _counted(decided)
    if counted.is_empty():
        return
    above = (pl.col("outcome") != "win").sum()
    beaten = pl.col("outcome").is_in(["loss", "invalid"]).any()
    right = counted.group_by(*ITEM, "chosen", maintain_order=True).agg(above=above, beaten=beaten)
    items = right.group_by(ITEM, maintain_order=True).agg(
        reciprocal_rank=1 / (1 + pl.col("above").min()), accuracy_with_ties=(~pl.col("beaten")).any().cast(pl.Float64)
    )
    for metric in ("reciprocal_rank", "accuracy_with_ties"):
        yield MetricKey(metric), item_mean(items, items[metric])


def best_of_k_numbers(decided: Decided) -> Numbers:
    """Yield the accuracy of the best of k responses of each config, and numbers of this curve."""
    if decided.responses is not None and "score" in decided.responses.columns:
        ours = decided.responses.filter(in_overall(decided.benchmark))
        for (config,), part in ours.partition_by("config", as_dict=True).items():
            yield from _best_of_k(str(config), part)


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
        yield MetricKey("best_of_k", config, k=k), item_mean(items, pl.Series(mean[:, k - 1]))
    by_order = np.mean(curves, axis=1)  # shape (orders, k)
    numbers = {
        "max": float(by_order.max(1).mean()),
        "loss": float(((by_order - np.mean(oracle, axis=1)) ** 2).mean()),
        "auc": _auc(right, scores),
        "invalid_responses": float((~valid).sum()),
    }
    for metric, value in numbers.items():
        yield MetricKey(metric, config), Estimate(value, n=items.height)


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


_CONFIG = ("config",)
METRICS = (
    *computed_by(
        unpaired_numbers,
        Metric(
            "unpaired",
            "count",
            "Prompts of Ties without a credit: no twin has one.",
            note=("Without credit because the twin has no score", "prompt"),
        ),
    ),
    *computed_by(
        style_numbers,
        Metric(
            "style_accuracy",
            "share",
            "Accuracy of the pairs of some styles; without a section, the mean over sections.",
            ("level", "section level", "style", "section style"),
            optional=True,
            terms={
                "easy": "the style of the right response is more elaborate than the wrong one's; normal: equally; "
                "hard: less."
            },
            check=check_styles,
        ),
    ),
    *computed_by(
        rank_numbers,
        Metric(
            "reciprocal_rank",
            "share",
            "Mean of 1 / rank of the best right response, behind wrong ones with the same score.",
            optional=True,
            in_tables=True,
            terms={
                "reciprocal rank": "1 / rank of the right response, behind wrong ones with the same score.",
                "accuracy with ties": "right unless a wrong response is above.",
            },
        ),
        Metric("accuracy_with_ties", "share", "Share of items with no wrong response above the best.", in_tables=True),
    ),
    *computed_by(
        best_of_k_numbers,
        Metric(
            "best_of_k",
            "share",
            "Share of random sets of k responses whose highest-scored one is right.",
            ("config k",),
            optional=True,
            terms={
                "best of k": "the highest-scored of k responses is right. Of this curve, max is the highest point and "
                "loss the mean squared distance to an oracle's curve; AUC is over all responses."
            },
        ),
        Metric("max", "share", "Highest point of the curve of best of k, mean over orders.", _CONFIG, in_tables=True),
        Metric("loss", "number", "Mean squared distance of this curve to an oracle's.", _CONFIG, in_tables=True),
        Metric("auc", "share", "Area under the ROC curve of scaled scores.", _CONFIG, title="AUC", in_tables=True),
        Metric(
            "invalid_responses",
            "count",
            "Responses without a finite score.",
            _CONFIG,
            note=("With an invalid score, which loses in best of k", "response"),
        ),
    ),
)
