"""Thresholds of scores of steps: the default, a given one, or the one with the largest F1 on some items."""

from collections.abc import Mapping
from itertools import chain
from math import isfinite

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_rewards import OnScored

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import first_wrong_steps
from pluralbench.data.layouts.steps import CORRECT, ERRONEOUS
from pluralbench.errors import BenchmarkError, EvaluationError

DEFAULT = 0.5
Array = NDArray[np.float64]


def harmonic_mean(first: Array, second: Array) -> Array:
    """Return the harmonic mean of shares of shape (rows,): 0 where both are 0, its limit; NaN where one is missing."""
    total = first + second
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


def threshold_of(benchmark: Benchmark, rows: pl.DataFrame) -> float:
    """Return the score below which a step is wrong.

    Args:
        benchmark: Description of the benchmark.
        rows: Rows of `items.parquet`, one per step, of all items.
    """
    if benchmark.tune_step_threshold is not None:
        return tuned_threshold(rows.filter(config=benchmark.tune_step_threshold))
    return DEFAULT if benchmark.step_threshold is None else benchmark.step_threshold


def tuned_threshold(rows: pl.DataFrame) -> float:
    """Return the threshold with the largest F1: the middle of the lowest range of thresholds that have it.

    If no threshold has an F1 above 0, all are alike, and it is `DEFAULT`.

    Args:
        rows: Rows of `items.parquet`, one per step.
    """
    answers = first_wrong_steps(rows).filter(~pl.col("dropped"))
    bounds = answers.select("above", "most").to_numpy().ravel()
    points = np.unique(bounds[np.isfinite(bounds)])
    middles = (points[:-1] + points[1:]) / 2  # between two bounds no answer changes
    accuracies = []
    for subset in (ERRONEOUS, CORRECT):
        own = answers.filter(subset=subset)
        found = own.filter(pl.col("valid"), pl.col("above") < pl.col("most"))
        above, most = (np.sort(found[name].to_numpy()) for name in ("above", "most"))
        right = np.searchsorted(above, middles) - np.searchsorted(most, middles)
        accuracies.append(right / max(own.height, 1))
    f1 = harmonic_mean(*accuracies)
    return float(middles[f1.argmax()]) if f1.max(initial=0.0) > 0 else DEFAULT


def check_tuned_config(benchmark: Benchmark, items: pl.DataFrame) -> None:
    """Raise `BenchmarkError` unless the config on which the threshold is tuned has answers of both kinds."""
    config = benchmark.tune_step_threshold
    present = set(items.filter(config=config)["subset"]) if config is not None else {ERRONEOUS, CORRECT}
    missing = [subset for subset in (ERRONEOUS, CORRECT) if subset not in present]
    if missing:
        configs = ", ".join(items["config"].unique(maintain_order=True))
        raise BenchmarkError(
            f"The threshold cannot be tuned on {config}, which has no {' and no '.join(missing)} answers among the "
            f"items (configs: {configs}); choose another config, or set `step_threshold=...`."
        )


def checking_probabilities(name: str, on_scored: OnScored) -> OnScored:
    """Return `on_scored` with a check that scores are from 0 to 1, without which `DEFAULT` has no meaning.

    Args:
        name: Name of the model.
        on_scored: Records the scores of items.

    Raises:
        EvaluationError: By the returned function, for another score; the scores of this call are then not recorded.
    """

    def checked(scores: Mapping[int, list[float]]) -> None:
        every = chain.from_iterable(scores.values())
        other = next((score for score in every if isfinite(score) and not 0 <= score <= 1), None)
        if other is not None:
            raise EvaluationError(
                f"{name} gives a step the score {other:.4g}, so its scores are no probabilities, to which the "
                f"threshold of {DEFAULT} belongs; set `step_threshold=...`, the score below which a step is wrong."
            )
        if on_scored is not None:
            on_scored(scores)

    return checked
