"""`compare`: two runs on the same items, as a paired test."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, RESAMPLES, Array

from pluralbench.errors import RunError
from pluralbench.metrics.accuracy import COUNTED
from pluralbench.results.decisions import BASE, decide
from pluralbench.results.runs import Run

PERMUTATIONS = 9999
KEYS = ["config", "id", "chosen", "rejected"]


@dataclass(frozen=True)
class Comparison:
    """How two runs differ on the decisions they share.

    accuracy_first, accuracy_second, difference (second less first), interval of the difference.
    only_first, only_second: decisions that only that run got right. p_value: of no difference, by exchanging the runs
    within each cluster (prompt or user). left_out: decisions that only one of them has.
    """

    first: str
    second: str
    decisions: int
    clusters: int
    accuracy_first: float
    accuracy_second: float
    difference: float
    interval: tuple[float, float]
    only_first: int
    only_second: int
    p_value: float
    left_out: int


def compare(first: Run, second: Run, *, seed: int = 0) -> Comparison:
    """Compare two runs. Raises `RunError` when they share no decision, or are of different benchmarks."""
    names = [run.run["benchmark"]["name"] for run in (first, second)]
    if names[0] != names[1]:
        raise RunError(f"{first.path} is of the benchmark {names[0]} and {second.path} of {names[1]}.")
    ours, theirs = (decisions_of(run).filter(pl.col("outcome").is_in(COUNTED)) for run in (first, second))
    both = ours.join(theirs, on=KEYS, how="inner", suffix="_second", nulls_equal=True)
    if both.is_empty():
        raise RunError(f"{first.path} and {second.path} have no item in common, so they cannot be compared.")
    if (both["digest"] != both["digest_second"]).any():
        raise RunError(
            f"{first.path} and {second.path} share ids, but their items differ in content (another version of the "
            "data); score both on the same data."
        )
    right = both.select(
        "cluster",
        first=(pl.col("outcome") == "win").cast(pl.Int64),
        second=(pl.col("outcome_second") == "win").cast(pl.Int64),
    )
    sums = right.group_by("cluster", maintain_order=True).agg(pl.col("first", "second").sum(), n=pl.len())
    a, b, n = (sums[name].to_numpy().astype(np.float64) for name in ("first", "second", "n"))
    accuracies = [float(right[name].mean() or 0) for name in ("first", "second")]  # type: ignore[arg-type]
    return Comparison(
        first=_label(first),
        second=_label(second),
        decisions=both.height,
        clusters=sums.height,
        accuracy_first=accuracies[0],
        accuracy_second=accuracies[1],
        difference=accuracies[1] - accuracies[0],
        interval=_interval(b - a, n, seed),
        only_first=right.filter((pl.col("first") == 1) & (pl.col("second") == 0)).height,
        only_second=right.filter((pl.col("first") == 0) & (pl.col("second") == 1)).height,
        p_value=_p_value(a, b, seed),
        left_out=ours.height + theirs.height - 2 * both.height,
    )


def decisions_of(run: Run) -> pl.DataFrame:
    """The decisions behind a run's `items.parquet`, with `chosen` and `rejected` naming the responses."""
    items = run.items
    if "response" not in items.columns:
        named = (
            []
            if "chosen" in items.columns
            else [pl.lit("chosen").alias("chosen"), pl.lit("rejected").alias("rejected")]
        )
        return items.with_columns(named)
    grouped = items.group_by(*BASE, maintain_order=True).agg(
        response_ids="response",
        rank="rank",
        scores="score",
        cut=pl.col("tokens_cut").max(),
        dropped=(pl.col("outcome") == "dropped").any(),
    )
    scores: list[list[float]] = [
        [] if gone else [float("nan") if value is None else value for value in values]
        for values, gone in grouped.select("scores", "dropped").iter_rows()
    ]
    return decide(grouped, scores, grouped["cut"].to_list())


def _label(run: Run) -> str:
    return str(run.path)


def _interval(differences: Array, counts: Array, seed: int) -> tuple[float, float]:
    generator = np.random.default_rng(seed)
    clusters = len(counts)
    drawn = [
        differences[chosen].sum() / counts[chosen].sum()
        for chosen in (generator.integers(0, clusters, clusters) for _ in range(RESAMPLES))
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def _p_value(first: Array, second: Array, seed: int) -> float:
    def difference(a: Any, b: Any, axis: int) -> Any:
        return np.sum(b - a, axis=axis)

    if len(first) < 2:
        return 1.0
    from scipy.stats import permutation_test  # noqa: PLC0415 - two seconds that `--help` saves

    tested = permutation_test(
        (first, second),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=500,
        rng=seed,
    )
    return float(tested.pvalue)
