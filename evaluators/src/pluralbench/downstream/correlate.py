"""Rank correlation between a reward-model benchmark and a downstream result, with intervals and tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_measures.correlation import NAMES, PAPER, STANDARD, permutation_test, rank_statistics
from pluralbench_measures.rank_intervals import (
    MIN_MODELS,
    Difference,
    differences,
    interval,
    interval_from_null,
    min_models,
    models_to_detect,
    models_to_distinguish,
    reliability,
)
from pluralbench_runs import Seed
from pluralbench_runs.options import Flag

from pluralbench.arguments import Columns
from pluralbench.downstream.score_series import ScoreSeries, first_few, read_series
from pluralbench.errors import DataError


@dataclass(frozen=True)
class Statistic:
    """A rank statistic with its 95 % interval; a missing number is None.

    `without_noise` is corrected for the noise of the items. `p_value` is one-sided, of the permutation test for no
    association.
    """

    value: float | None
    low: float | None
    high: float | None
    without_noise: float | None
    p_value: float | None


@dataclass(frozen=True)
class Baseline:
    """Another benchmark, correlated on the models that it shares with the benchmark and the downstream result.

    Attributes:
        source: Where the baseline's scores are from.
        n: Number of shared models.
        statistics: Rank statistics of the baseline, by name.
        differences: The benchmark's statistics minus the baseline's, by name.
        models_needed: Number of models that distinguishes the two Spearman correlations with 80 % power if they are as
            large as measured; None if they are equal.
    """

    source: str
    n: int
    statistics: Mapping[str, Statistic]
    differences: Mapping[str, Difference]
    models_needed: int | None


@dataclass(frozen=True)
class Correlation:
    """Rank correlation of a benchmark with a downstream result.

    Attributes:
        benchmark: The benchmark's scores, of the shared models.
        downstream: The downstream scores, of the shared models.
        statistics: Rank statistics by the names of `pluralbench_measures.correlation.NAMES`.
        exact: Whether the p-values are computed over all orders of the models.
        orders: Number of orders in the permutation test.
        reliabilities: Share of the variance between models that is not noise of the items, by side (`benchmark`,
            `downstream`); None without per-item results.
        baselines: Other benchmarks compared with this one, by name.
        models_needed: Number of models at which the Spearman correlation is significant (p < 0.05) with 80 % power if
            it is as large as measured; None if it is not positive.
        warnings: Warnings for the reader, one sentence each.
        seed: Seed of the resampled items, models and orders.
    """

    benchmark: ScoreSeries
    downstream: ScoreSeries
    statistics: Mapping[str, Statistic]
    exact: bool
    orders: int
    reliabilities: Mapping[str, float | None]
    baselines: Mapping[str, Baseline]
    models_needed: int | None
    warnings: Sequence[str]
    seed: int

    @property
    def names(self) -> Sequence[str]:
        """Names of the shared models."""
        return self.benchmark.names

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the four statistics of the paper at the top level, all others nested."""
        statistics = self.statistics
        scores = zip(self.names, self.benchmark.scores, self.downstream.scores, strict=True)
        return {
            "n": len(self.names),
            **{name: statistics[name].value for name in PAPER},
            "standard": {name: statistics[name].value for name in STANDARD},
            "p_values": {
                "alternative": "the rankings agree more than by chance (one-sided)",
                "exact": self.exact,
                "orders": self.orders,
                **{name: statistics[name].p_value for name in NAMES},
            },
            "intervals": {
                "confidence": CONFIDENCE,
                "without_noise_of_items": {side: value is not None for side, value in self.reliabilities.items()},
                **{name: _bounds(statistics[name]) for name in NAMES},
            },
            "without_noise": {name: statistics[name].without_noise for name in NAMES},
            "reliability": dict(self.reliabilities),
            "power": {"models_for_significance": self.models_needed},
            "baselines": {
                name: {
                    "source": baseline.source,
                    "n": baseline.n,
                    **{name: baseline.statistics[name].value for name in NAMES},
                    "differences": {
                        name: {"value": gap.value, "interval": _bounds(gap), "p_value": gap.p_value}
                        for name, gap in baseline.differences.items()
                    },
                    "models_to_tell_apart": baseline.models_needed,
                }
                for name, baseline in self.baselines.items()
            },
            "models": [{"model": name, "benchmark": float(x), "downstream": float(y)} for name, x, y in scores],
            "benchmark": {"source": self.benchmark.source, "measure": self.benchmark.measure},
            "downstream": {"source": self.downstream.source, "measure": self.downstream.measure},
            "warnings": list(self.warnings),
            "seed": self.seed,
        }


def correlate(
    benchmark: ScoreSeries | str | Path,
    downstream: ScoreSeries | str | Path,
    *,
    columns: Columns = (),
    downstream_columns: Columns = (),
    baseline_columns: Columns = (),
    baselines: Annotated[
        Mapping[str, ScoreSeries | str | Path] | None, Flag("--baseline", "NAME=FILE", example="arena=arena.csv")
    ] = None,
    seed: Seed = 0,
) -> Correlation:
    """Correlate a benchmark's scores of reward models with the downstream results of a policy, with intervals.

    A table is a CSV, JSON Lines or Parquet file with a column `model` and one or more columns of scores (higher is
    better). The score of a run is its overall number. Models are matched by exact name. If the two sides share no name,
    they are matched by the last part of their paths.

    Args:
        benchmark: Table with `model` and scores, a run, or a directory or glob pattern of runs. In Python also a
            `ScoreSeries`.
        downstream: The same for the downstream results of a policy; also a directory of `best-of-n`, or several of
            `optimize`.
        columns: Columns of the benchmark's table whose mean is the score. Default: the only numeric column.
        downstream_columns: Columns of the downstream table whose mean is the score.
        baseline_columns: Columns of the baselines' tables.
        baselines: Another benchmark to compare, by name; repeatable.
        seed: Random seed, of the resampled items, models and orders.

    Returns:
        Rank statistics with intervals, p-values and reliabilities, the baselines, and warnings.

    Raises:
        DataError: Fewer than two models are shared, or a table has no models or no scores.
        RunError: Runs cannot be read, or are of different benchmarks.

    Examples:
        pluralbench correlate benchmark.csv best_of_16.csv
        pluralbench correlate benchmark.csv ppo.csv --columns art,lifestyle,society      # mean of the three
        pluralbench correlate runs/personalized best_of_16.csv --baseline arena=arena.csv --plots figures
        pluralbench correlate benchmark.csv best_of_16.csv --html correlation.html
        pluralbench correlate benchmark.csv best_of_16.csv --json > correlation.json
    """
    first = _series(benchmark, columns, seed, "columns")
    second = _series(downstream, downstream_columns, seed, "downstream_columns")
    first, second = _with_matching_names(first, second)
    names = _shared_models([first, second])
    warnings = [*first.warnings, *second.warnings, *_unmatched([first, second], names)]
    ours, theirs = first.of(names), second.of(names)
    reliabilities = {"benchmark": _reliability(ours), "downstream": _reliability(theirs)}
    test = permutation_test(ours.scores, theirs.scores, seed)
    statistics = _statistics(ours, theirs, test.p_values, seed)
    warnings += _warnings(ours, theirs, reliabilities)
    compared = {}
    for name, baseline in (baselines or {}).items():
        side = _series(baseline, baseline_columns, seed, "baseline_columns")
        compared[name], more_warnings = _baseline(name, side, ours, theirs, seed)
        warnings += more_warnings
    rho = statistics["spearman"].value
    needed = None if rho is None else models_to_detect(rho)
    return Correlation(
        ours, theirs, statistics, test.exact, test.orders, reliabilities, compared, needed, warnings, seed
    )


def _series(source: ScoreSeries | str | Path, columns: str | Sequence[str], seed: int, parameter: str) -> ScoreSeries:
    columns = columns.split(",") if isinstance(columns, str) else columns
    columns = [name.strip() for name in columns if name.strip()]
    return source if isinstance(source, ScoreSeries) else read_series(source, columns, seed=seed, parameter=parameter)


def _with_matching_names(first: ScoreSeries, second: ScoreSeries) -> tuple[ScoreSeries, ScoreSeries]:
    """Shorten names to the last part of their path if the two sides share no name."""
    if set(first.names) & set(second.names):
        return first, second
    short = [[name.rstrip("/").rpartition("/")[2] for name in side.names] for side in (first, second)]
    if any(len(set(names)) < len(names) for names in short) or not set(short[0]) & set(short[1]):
        return first, second
    warning = "No full model name is on both sides, so models are matched by the last parts of their names."
    return replace(first, names=short[0], warnings=[*first.warnings, warning]), replace(second, names=short[1])


def _shared_models(sides: Sequence[ScoreSeries]) -> list[str]:
    """Return the models that all sides have, in the order of the first."""
    first, *others = sides
    names = [name for name in first.names if all(name in other.names for other in others)]
    if len(names) >= 2:
        return names
    contents = "; ".join(f"{side.source} has {first_few(side.names)}" for side in sides)
    if not names:
        raise DataError(f"No model is on both sides; model names must match exactly: {contents}.")
    raise DataError(f"Only the model {names[0]} is on both sides; a correlation needs at least two: {contents}.")


def _unmatched(sides: Sequence[ScoreSeries], names: Sequence[str]) -> Iterator[str]:
    for side in sides:
        missing = [name for name in side.names if name not in names]
        if missing:
            yield f"Left out, because only {side.source} has them: {first_few(missing)}."


def _reliability(side: ScoreSeries) -> float | None:
    return None if side.resampled is None else reliability(side.resampled)


def _joint_reliability(sides: Sequence[ScoreSeries]) -> float:
    """Return the product of the reliabilities; an unknown one counts as 1, one that is not positive as 0."""
    shares = [_reliability(side) for side in sides]
    return float(np.prod([1.0 if share is None else max(0.0, share) for share in shares]))


def _statistics(
    benchmark: ScoreSeries, downstream: ScoreSeries, p_values: Mapping[str, float | None], seed: int
) -> dict[str, Statistic]:
    models, reliability_product = len(benchmark.names), _joint_reliability([benchmark, downstream])
    has_noise = benchmark.resampled is not None or downstream.resampled is not None
    statistics = {}
    for name, values in rank_statistics(benchmark.scores, downstream.scores).items():
        value = float(values[0])
        if np.isnan(value):
            statistics[name] = Statistic(None, None, None, None, None)
            continue
        one = interval(name, value, models, reliability_product, seed)
        without = (
            interval_from_null(name, value, models, reliability_product=reliability_product, seed=seed)
            if has_noise and one.low is not None
            else None
        )
        statistics[name] = Statistic(value, one.low, one.high, without, p_values[name])
    return statistics


def _warnings(
    benchmark: ScoreSeries, downstream: ScoreSeries, reliabilities: Mapping[str, float | None]
) -> Iterator[str]:
    models = len(benchmark.names)
    if models == 2:
        yield "Two models have only two possible orders, so the statistics carry almost no information."
    elif models < MIN_MODELS:
        yield f"No intervals: {models} models are too few for reliable intervals; they need at least {MIN_MODELS}."
    elif models < min_models("rbo"):
        yield (
            f"RBO takes too few values with {models} models for a reliable interval; "
            + f"it needs at least {min_models('rbo')} models."
        )
    for side in (benchmark, downstream):
        yield from _ties(side)
    for what, side in (("benchmark", benchmark), ("downstream", downstream)):
        share = reliabilities[what]
        if share is not None and share <= 0 and models > 2:
            yield (
                f"No intervals: the models' scores in {side.source} differ by no more than the noise of its items, so "
                "their order carries no information."
            )


def _ties(side: ScoreSeries) -> Iterator[str]:
    values, counts = np.unique(side.scores, return_counts=True)
    if len(values) == 1:
        yield f"All models have the same score in {side.source}, so no rank correlation exists."
    elif (counts > 1).any():
        groups = [
            " = ".join(name for name, score in zip(side.names, side.scores, strict=True) if score == value)
            for value in values[counts > 1]
        ]
        yield (
            f"Ties in {side.source}: {first_few(groups)}. NDCG, RBO and weighted tau are means over all orders of the "
            "tied models; Spearman uses average ranks; tau-b corrects for ties."
        )


def _baseline(
    name: str, side: ScoreSeries, benchmark: ScoreSeries, downstream: ScoreSeries, seed: int
) -> tuple[Baseline, list[str]]:
    names = _shared_models([benchmark, side])
    ours, theirs, result = benchmark.of(names), side.of(names), downstream.of(names)
    warnings = [*side.warnings, *_unmatched([benchmark], names), *_unmatched([side], names), *_ties(theirs)]
    p_values = permutation_test(theirs.scores, result.scores, seed).p_values
    statistics = _statistics(theirs, result, p_values, seed)
    reliability_product = (_joint_reliability([ours, result]), _joint_reliability([theirs, result]))
    gaps = differences(ours.scores, theirs.scores, result.scores, reliability_product, seed)
    rhos = [
        float(rank_statistics(one.scores, other.scores)["spearman"][0])
        for one, other in ((ours, result), (theirs, result), (ours, theirs))
    ]
    needed = None if np.isnan(rhos).any() else models_to_distinguish(*rhos)
    baseline = Baseline(side.source, len(names), statistics, gaps, needed)
    return baseline, [f"Baseline {name}: {warning}" for warning in warnings]


def _bounds(number: Statistic | Difference) -> list[float] | None:
    return None if number.low is None or number.high is None else [number.low, number.high]
