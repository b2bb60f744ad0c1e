"""Calibration of scores on rankings by category; see `pluralbench_measures.calibration`."""

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, sums_of
from pluralbench_measures.calibration import BINS, bins_of, calibration_error
from pluralbench_measures.intervals import linearize
from pluralbench_rewards import ModelRecord

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, MetricKey, Numbers, computed_by

LOG_ODDS = {"classifier", "implicit", "personal"}
"""Kinds of reward models whose score differences are log-odds of a preference, by the Bradley-Terry model."""


def scores_log_odds(model: ModelRecord) -> bool:
    """Return whether differences of a model's scores are log-odds; ratings and probabilities are not."""
    scaled = (model.label or "logit").partition(":")[0] != "logit" or model.settings.get("normalized")
    return model.kind in LOG_ODDS and not scaled


def calibration_numbers(decided: Decided) -> Numbers:
    """Yield the calibration of all scored pairs and of each config, for benchmarks of rankings by category.

    Only nonempty bins have numbers. The largest difference is in the last bin; the legacy rules drop it.
    Intervals keep the bins of the data fixed.
    """
    benchmark = decided.benchmark
    ours = decided.decisions.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
    if not benchmark.by_category or ours["margin"].null_count() == ours.height:
        return
    yield from _calibration(benchmark, ours, None)
    for (config,), part in ours.partition_by("config", as_dict=True).items():
        yield from _calibration(benchmark, part, str(config))


def _calibration(benchmark: Benchmark, decisions: pl.DataFrame, config: str | None) -> Numbers:
    scored = decisions.filter(pl.col("margin").is_not_null())
    bins = bins_of(scored["margin"].abs().to_numpy(), legacy=not benchmark.ties_break_exact_match)
    scored, bins = scored.filter(bins >= 0), bins[bins >= 0]
    ece = MetricKey("ece", config)
    if not len(bins):
        yield ece, Estimate(None, n=0)
        return
    cluster = scored["cluster"].rank("dense").cast(pl.Int64).to_numpy() - 1
    shape = int(cluster.max()) + 1, BINS
    won = (scored["outcome"] == "win").to_numpy().astype(np.float64)
    margins = scored["margin"].abs().to_numpy()
    linearized = linearize(*(sums_of(bins, cluster, values, shape=shape) for values in (won, margins)))
    pairs, differences = linearized.sources[0], linearized.sources[1].won
    errors = calibration_error(pairs.won, pairs.counts, differences)
    yield ece, linearized.estimate(errors, [range(BINS)], len(bins), shape[0], within=(0.0, 1.0))
    for number in np.unique(bins).tolist():
        n, clusters = pairs.decisions([number]), pairs.clusters([number])
        mean = float(differences[0, number] / pairs.counts[0, number])
        key = MetricKey("bin_accuracy", config, bin=number + 1)
        yield key, linearized.share(pairs.pooled([number]), [[number]], n, clusters)
        yield key._replace(metric="bin_difference"), Estimate(mean, n=n)
        yield key._replace(metric="bin_probability"), Estimate(float(1 / (1 + np.exp(-mean))), n=n)


_BINS = ("bin", "config bin")
METRICS = computed_by(
    calibration_numbers,
    Metric("ece", "number", "Expected calibration error of sigmoids of score differences, in bins.", ("", "config")),
    Metric("bin_accuracy", "share", "Accuracy of a calibration bin.", _BINS),
    Metric("bin_difference", "number", "Mean difference of scores in a bin of calibration.", _BINS),
    Metric("bin_probability", "share", "Sigmoid of the mean difference of a bin of calibration.", _BINS),
)
