"""The F1 of finding the first wrong step of an answer (ProcessBench): the unweighted mean over configs.

A config's F1 is the harmonic mean of the accuracies on erroneous and on correct answers. A model calls the first step
wrong whose score is below a threshold: the default, a given one, or the one with the largest F1 on some items.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import inf, isfinite

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array
from pluralbench_rewards import OnScored

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import BASE, DECISIONS
from pluralbench.data.fields import Cell
from pluralbench.data.layouts.steps import CORRECT, ERRONEOUS
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import Drawn, ResampledAccuracy, accuracy_of, configs_of, mean_accuracy
from pluralbench.data.rules.rule import Rule, same_weights
from pluralbench.errors import BenchmarkError, EvaluationError

DEFAULT = 0.5
SUBSETS = (ERRONEOUS, CORRECT)


def _words(benchmark: Benchmark) -> str:
    return (
        "unweighted mean of the configs, each the F1 (harmonic mean) of the accuracies on erroneous and on correct "
        "answers, by the first step whose score is below the threshold"
    )


def _accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> Iterator[ResampledAccuracy]:
    source, (configs, ours) = counts["decisions"], configs_of(benchmark, cells)
    accuracies = {
        subset: {
            config: accuracy_of(MetricKey("accuracy", config), source.pooled(places), source, [places])
            for config in configs
            for places in [[place for place, cell in enumerate(cells) if cell == (config, subset)]]
        }
        for subset in SUBSETS
    }
    f1 = {}
    for config in configs:
        both = [of_configs[config] for of_configs in accuracies.values()]
        strata = [stratum for one in both for stratum in one.strata]
        f1[config] = accuracy_of(MetricKey("f1", config), harmonic_mean(*(one.values for one in both)), source, strata)
    yield mean_accuracy(MetricKey("overall"), [f1[config] for config in ours], source)
    for subset, of_configs in accuracies.items():
        yield mean_accuracy(MetricKey("accuracy", subset=subset), [of_configs[config] for config in ours], source)
    yield from f1.values()


def harmonic_mean(first: Array, second: Array) -> Array:
    """Return the harmonic mean of shares of shape (rows,): 0 where both are 0, its limit; NaN where one is missing."""
    total = first + second
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


def _first_wrong_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """Return for each answer in steps between which thresholds a model finds its first wrong step.

    A model calls the first step wrong whose score is below the threshold. It is right if this is the first wrong step
    (of rank 2), or no step of a correct answer: if the threshold is above the former's score and at most the least
    score of the right steps. Later steps do not matter. The columns are `BASE`, `truncated`, `dropped`, whether all
    scores that matter are finite (`valid`), and the bounds `above` (exclusive) and `most` (inclusive), which may be
    infinite.
    """
    score, wrong = pl.col("score").cast(pl.Float64), pl.col("rank") == 2
    first = score.filter(wrong).first()
    by_item = rows.group_by(*BASE, maintain_order=True).agg(
        truncated=(pl.col("tokens_cut") > 0).any(),
        dropped=(pl.col("outcome") == "dropped").any(),
        valid=score.filter(~wrong).is_finite().all() & first.is_finite().fill_null(~wrong.any()),
        above=pl.when(wrong.any()).then(first).otherwise(-inf),
        most=score.filter(~wrong).min().fill_null(inf),
    )
    return by_item.with_columns(pl.col("valid") & ~pl.col("dropped"))


def step_decisions(rows: pl.DataFrame) -> pl.DataFrame:
    """Make one decision on each answer in steps: whether the first step below the threshold is the first wrong one.

    The margin says how far the threshold is inside the bounds of `_first_wrong_steps`, or outside (negative). The
    columns are `DECISIONS`; `chosen` and `rejected` are null.
    """
    threshold = pl.lit(rows["threshold"].first(), pl.Float64)
    inside = (pl.col("above") < threshold) & (threshold <= pl.col("most"))
    margin = pl.min_horizontal(threshold - pl.col("above"), pl.col("most") - threshold)
    outcome = pl.when("dropped").then(pl.lit("dropped")).when(~pl.col("valid")).then(pl.lit("invalid"))
    decided = _first_wrong_steps(rows).with_columns(
        chosen=pl.lit(None),
        rejected=pl.lit(None),
        outcome=outcome.when(inside).then(pl.lit("win")).otherwise(pl.lit("loss")),
        margin=pl.when("valid").then(margin),
    )
    return decided.select(pl.col(name).cast(kind) for name, kind in DECISIONS.items())


def _settle(benchmark: Benchmark, rows: pl.DataFrame) -> pl.DataFrame:
    threshold = DEFAULT if benchmark.step_threshold is None else benchmark.step_threshold
    if benchmark.tune_step_threshold is not None:
        threshold = tuned_threshold(rows.filter(config=benchmark.tune_step_threshold))
    return rows.with_columns(threshold=pl.lit(threshold, pl.Float64))


def tuned_threshold(rows: pl.DataFrame) -> float:
    """Return the threshold with the largest F1: the middle of the lowest range of thresholds that have it.

    If no threshold has an F1 above 0, all are alike, and it is `DEFAULT`.
    """
    answers = _first_wrong_steps(rows).filter(~pl.col("dropped"))
    bounds = answers.select("above", "most").to_numpy().ravel()
    points = np.unique(bounds[np.isfinite(bounds)])
    middles = (points[:-1] + points[1:]) / 2  # between two bounds no answer changes
    accuracies = []
    for subset in SUBSETS:
        own = answers.filter(subset=subset)
        found = own.filter(pl.col("valid"), pl.col("above") < pl.col("most"))
        above, most = (np.sort(found[name].to_numpy()) for name in ("above", "most"))
        right = np.searchsorted(above, middles) - np.searchsorted(most, middles)
        accuracies.append(right / max(own.height, 1))
    f1 = harmonic_mean(*accuracies)
    return float(middles[f1.argmax()]) if f1.max(initial=0.0) > 0 else DEFAULT


def _check(benchmark: Benchmark, items: pl.DataFrame, *, part: bool) -> None:
    """Raise `BenchmarkError` unless all items are here to tune a threshold on, and the config has both kinds."""
    config = benchmark.tune_step_threshold
    if config is None:
        return
    if benchmark.step_threshold is not None:
        raise BenchmarkError("`step_threshold` and `tune_step_threshold` exclude each other; choose one of them.")
    if part:
        raise BenchmarkError("`tune_step_threshold` needs the scores of all items; leave out `shard`.")
    present = set(items.filter(config=config)["subset"])
    missing = [subset for subset in SUBSETS if subset not in present]
    if missing:
        configs = ", ".join(items["config"].unique(maintain_order=True))
        raise BenchmarkError(
            f"The threshold cannot be tuned on {config}, which has no {' and no '.join(missing)} answers among the "
            f"items (configs: {configs}); choose another config, or set `step_threshold=...`."
        )


def _checking(benchmark: Benchmark, model: str, on_scored: OnScored) -> OnScored:
    """Return `on_scored` with a check that scores are from 0 to 1, without which `DEFAULT` has no meaning."""
    if benchmark.step_threshold is not None or benchmark.tune_step_threshold is not None:
        return on_scored

    def checked(scores: Mapping[int, list[float]]) -> None:
        every = chain.from_iterable(scores.values())
        other = next((score for score in every if isfinite(score) and not 0 <= score <= 1), None)
        if other is not None:
            raise EvaluationError(
                f"{model} gives a step the score {other:.4g}, so its scores are no probabilities, to which the "
                f"threshold of {DEFAULT} belongs; set `step_threshold=...`, the score below which a step is wrong."
            )
        if on_scored is not None:
            on_scored(scores)

    return checked


FIRST_ERROR = Rule(
    "F1",
    _words,
    _accuracies,
    same_weights,
    settle=_settle,
    settled=("threshold",),
    check=_check,
    checking=_checking,
    metric="f1",
    parts=SUBSETS,
    has_baselines=False,
    columns=("steps",),
    options=("step_threshold", "tune_step_threshold"),
)
