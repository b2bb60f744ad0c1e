"""Calibration of scores on rankings by category; see `pluralbench_measures.calibration`."""

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, sums_of
from pluralbench_measures.calibration import BINS, bins_of, calibration_error
from pluralbench_measures.intervals import linearize
from pluralbench_rewards import ModelRecord

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules import rule_of
from pluralbench.data.rules.accuracies import in_overall
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

LOG_ODDS = {"classifier", "implicit", "personal"}
"""Kinds of reward models whose score differences are log-odds of a preference, by the Bradley-Terry model."""


def scores_log_odds(model: ModelRecord) -> bool:
    """Return whether differences of a model's scores are log-odds; ratings and probabilities are not."""
    scaled = (model.label or "logit").partition(":")[0] != "logit" or model.settings.get("normalized")
    return model.kind in LOG_ODDS and not scaled


def calibration_numbers(decided: Decided) -> Numbers:
    """Yield the calibration of all scored pairs and of each config.

    Only benchmarks of rankings by category have it, and judges whose verdicts have probabilities: their difference is
    the log-odds of the mean probability over both orders. Only nonempty bins have numbers. The largest difference is in
    the last bin; the legacy rules drop it. Intervals keep the bins of the data fixed.
    """
    benchmark = decided.benchmark
    ours = decided.decisions.filter(in_overall(benchmark))
    if is_soft := "bounds" in ours.columns:
        yield from _counts_of_probabilities(ours)
        ours = ours.with_columns(
            margin=_log_odds(pl.col("margin")),
            outcome=pl.when(pl.col("margin") > 0).then(pl.lit("win")).otherwise(pl.lit("loss")),
        )
    if not (rule_of(benchmark).calibrated or is_soft) or ours["margin"].null_count() == ours.height:
        return
    yield from _calibration(benchmark, ours, None)
    for (config,), part in ours.partition_by("config", as_dict=True).items():
        yield from _calibration(benchmark, part, str(config))


def _log_odds(margin: pl.Expr) -> pl.Expr:
    """Return the log-odds of a probability, given less 1/2; a probability of 0 or 1 counts as the nearest other one."""
    probability = (margin + 0.5).clip(np.finfo(np.float64).eps, 1 - np.finfo(np.float64).eps)
    return (probability / (1 - probability)).log()


def _counts_of_probabilities(decisions: pl.DataFrame) -> Numbers:
    """Yield how many verdicts of a judge have a bound in place of a probability, and how many valid ones have none."""
    pairs = (
        ("verdict_chosen_first", "probability_chosen_first"),
        ("verdict_rejected_first", "probability_rejected_first"),
        ("choice", "probability"),
        ("choice_swapped", "probability_swapped"),
    )
    missing = sum(
        decisions.filter(pl.col(letter) != "invalid", pl.col(probability).is_null()).height
        for letter, probability in pairs
        if letter in decisions.columns
    )
    yield MetricKey("probability_bounds"), Estimate(float(decisions["bounds"].sum()))
    yield MetricKey("without_probability"), Estimate(float(missing))


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
    Metric(
        "probability_bounds",
        "count",
        "Verdicts of which a probability is a bound, as no likely token says it.",
        note=("Probability is a bound, because a verdict is not among the likeliest tokens", "verdict"),
    ),
    Metric(
        "without_probability",
        "count",
        "Valid verdicts without a probability, as no single token decides them.",
        note=("No probability, because no single token decides the verdict", "verdict"),
    ),
    Metric("bin_accuracy", "share", "Accuracy of a calibration bin.", _BINS),
    Metric("bin_difference", "number", "Mean difference of scores in a bin of calibration.", _BINS),
    Metric("bin_probability", "share", "Sigmoid of the mean difference of a bin of calibration.", _BINS),
)
