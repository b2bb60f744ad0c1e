"""`correlate`: how well a benchmark of reward models predicts what they do to a policy, and how sure that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

from pluralbench.downstream.score_series import ScoreSeries, first_few, read_series
from pluralbench.errors import DataError


@dataclass(frozen=True)
class Statistic:
    """A rank statistic, each number None where it is missing.

    low, high: its 95 % interval. without_noise: what it would be without the noise of the items, where that is known.
    p_value: one-sided, of no association.
    """

    value: float | None
    low: float | None
    high: float | None
    without_noise: float | None
    p_value: float | None


@dataclass(frozen=True)
class Baseline:
    """Another benchmark beside the one at hand, on the models that both have and the downstream has.

    n: these models. statistics: of the baseline. differences: the benchmark's less the baseline's. models_needed: to
    tell the two Spearman correlations apart in 80 of 100 studies, if they are as large as they are here; None where
    they are equal.
    """

    source: str
    n: int
    statistics: Mapping[str, Statistic]
    differences: Mapping[str, Difference]
    models_needed: int | None


@dataclass(frozen=True)
class Correlation:
    """What a benchmark says of a downstream result.

    benchmark, downstream: both sides, with the models that both have. statistics: by the names of
    `pluralbench_measures.correlation.NAMES`. exact: whether the p-values are of all orders of the models; orders: of
    how many. reliabilities: the share of the variance between models that is not noise of the items, by side, None
    where there are no per-item results. models_needed: to find the Spearman correlation significant (p < 0.05) in 80
    of 100 studies, if it is as large as it is here; None where it is not positive. warnings: a sentence each.
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
        """The models."""
        return self.benchmark.names

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain JSON values: the four of the paper at the top, all else below."""
        found = self.statistics
        scores = zip(self.names, self.benchmark.scores, self.downstream.scores, strict=True)
        return {
            "n": len(self.names),
            **{name: found[name].value for name in PAPER},
            "standard": {name: found[name].value for name in STANDARD},
            "p_values": {
                "alternative": "the rankings agree more than by chance (one-sided)",
                "exact": self.exact,
                "orders": self.orders,
                **{name: found[name].p_value for name in NAMES},
            },
            "intervals": {
                "confidence": CONFIDENCE,
                "without_noise_of_items": {side: value is not None for side, value in self.reliabilities.items()},
                **{name: _bounds(found[name]) for name in NAMES},
            },
            "without_noise": {name: found[name].without_noise for name in NAMES},
            "reliability": dict(self.reliabilities),
            "power": {"models_for_significance": self.models_needed},
            "baselines": {
                name: {
                    "source": one.source,
                    "n": one.n,
                    **{name: one.statistics[name].value for name in NAMES},
                    "differences": {
                        name: {"value": gap.value, "interval": _bounds(gap), "p_value": gap.p_value}
                        for name, gap in one.differences.items()
                    },
                    "models_to_tell_apart": one.models_needed,
                }
                for name, one in self.baselines.items()
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
    columns: Sequence[str] = (),
    downstream_columns: Sequence[str] = (),
    baseline_columns: Sequence[str] = (),
    baselines: Mapping[str, ScoreSeries | str | Path] | None = None,
    seed: int = 0,
) -> Correlation:
    """Correlate a benchmark's ranking of models with that of a downstream result, and compare it with other benchmarks.

    benchmark, downstream, baselines: a `ScoreSeries`, or where one is read from (see `read_series`); models are
    matched by their exact names, or, where none is on both sides, by the last parts of names that are paths.
    columns: of the benchmark's table; downstream_columns, baseline_columns: of the others. seed: of items, models and
    orders that are drawn.

    Raises `DataError` where fewer than two models are on both sides, and as `read_series` does.
    """
    first = _side(benchmark, columns, seed, "columns")
    second = _side(downstream, downstream_columns, seed, "downstream_columns")
    first, second = _named_alike(first, second)
    names = _shared([first, second])
    warnings = [*first.warnings, *second.warnings, *_left_out([first, second], names)]
    ours, theirs = first.of(names), second.of(names)
    reliabilities = {"benchmark": _reliability(ours), "downstream": _reliability(theirs)}
    test = permutation_test(ours.scores, theirs.scores, seed)
    statistics = _statistics(ours, theirs, test.p_values, seed)
    warnings += _warnings(ours, theirs, reliabilities)
    compared = {}
    for name, given in (baselines or {}).items():
        side = _side(given, baseline_columns, seed, "baseline_columns")
        compared[name], said = _baseline(name, side, ours, theirs, seed)
        warnings += said
    rho = statistics["spearman"].value
    needed = None if rho is None else models_to_detect(rho)
    return Correlation(
        ours, theirs, statistics, test.exact, test.orders, reliabilities, compared, needed, warnings, seed
    )


def _side(given: ScoreSeries | str | Path, columns: Sequence[str], seed: int, parameter: str) -> ScoreSeries:
    return given if isinstance(given, ScoreSeries) else read_series(given, columns, seed=seed, parameter=parameter)


def _named_alike(first: ScoreSeries, second: ScoreSeries) -> tuple[ScoreSeries, ScoreSeries]:
    """Both sides, with the last parts of names that are paths where no name is on both."""
    if set(first.names) & set(second.names):
        return first, second
    short = [[name.rstrip("/").rpartition("/")[2] for name in side.names] for side in (first, second)]
    if any(len(set(names)) < len(names) for names in short) or not set(short[0]) & set(short[1]):
        return first, second
    said = "Models are matched by the last parts of their names, since no whole name is on both sides."
    return replace(first, names=short[0], warnings=[*first.warnings, said]), replace(second, names=short[1])


def _shared(sides: Sequence[ScoreSeries]) -> list[str]:
    """The models that all sides have, in the order of the first. Raises `DataError` for fewer than two."""
    first, *others = sides
    names = [name for name in first.names if all(name in other.names for other in others)]
    if len(names) >= 2:
        return names
    told_of = "; ".join(f"{side.source} has {first_few(side.names)}" for side in sides)
    if not names:
        raise DataError(f"No model is on both sides, and names must be the same to the letter: {told_of}.")
    raise DataError(f"Only the model {names[0]} is on both sides, and a correlation needs two or more: {told_of}.")


def _left_out(sides: Sequence[ScoreSeries], names: Sequence[str]) -> Iterator[str]:
    for side in sides:
        gone = [name for name in side.names if name not in names]
        if gone:
            yield f"Only in {side.source}, and left out: {first_few(gone)}."


def _reliability(side: ScoreSeries) -> float | None:
    return None if side.resampled is None else reliability(side.resampled)


def _kept(sides: Sequence[ScoreSeries]) -> float:
    """The product of both sides' reliabilities, 1 where one is not known; 0 where noise is all that there is."""
    shares = [_reliability(side) for side in sides]
    return float(np.prod([1.0 if share is None else max(0.0, share) for share in shares]))


def _statistics(
    benchmark: ScoreSeries, downstream: ScoreSeries, p_values: Mapping[str, float | None], seed: int
) -> dict[str, Statistic]:
    models, kept = len(benchmark.names), _kept([benchmark, downstream])
    noisy = benchmark.resampled is not None or downstream.resampled is not None
    found = {}
    for name, values in rank_statistics(benchmark.scores, downstream.scores).items():
        value = float(values[0])
        if np.isnan(value):
            found[name] = Statistic(None, None, None, None, None)
            continue
        one = interval(name, value, models, kept, seed)
        without = (
            interval_from_null(name, value, models, reliability_product=kept, seed=seed)
            if noisy and one.low is not None
            else None
        )
        found[name] = Statistic(value, one.low, one.high, without, p_values[name])
    return found


def _warnings(
    benchmark: ScoreSeries, downstream: ScoreSeries, reliabilities: Mapping[str, float | None]
) -> Iterator[str]:
    models = len(benchmark.names)
    if models == 2:
        yield "Two models can only be in the same order or in the other one, so the statistics say next to nothing."
    elif models < MIN_MODELS:
        yield f"There are no intervals: {models} models are too few for any that would hold; it takes {MIN_MODELS}."
    elif models < min_models("rbo"):
        yield (
            f"RBO has too few values among {models} models for an interval that would hold; "
            + f"it takes {min_models('rbo')}."
        )
    for side in (benchmark, downstream):
        yield from _ties(side)
    for what, side in (("benchmark", benchmark), ("downstream", downstream)):
        share = reliabilities[what]
        if share is not None and share <= 0 and models > 2:
            yield (
                f"There are no intervals: the models' scores in {side.source} differ by no more than the noise of its "
                "items, so their order says nothing."
            )


def _ties(side: ScoreSeries) -> Iterator[str]:
    values, counts = np.unique(side.scores, return_counts=True)
    if len(values) == 1:
        yield f"All models have the same score in {side.source}, so there is no order to correlate."
    elif (counts > 1).any():
        groups = [
            " = ".join(name for name, score in zip(side.names, side.scores, strict=True) if score == value)
            for value in values[counts > 1]
        ]
        yield (
            f"Ties in {side.source}: {first_few(groups)}. NDCG, RBO and weighted tau are the mean over all orders of "
            "tied models, Spearman has average ranks, and tau-b its correction."
        )


def _baseline(
    name: str, side: ScoreSeries, benchmark: ScoreSeries, downstream: ScoreSeries, seed: int
) -> tuple[Baseline, list[str]]:
    """The baseline on the models that it has, and what has to be known of it."""
    names = _shared([benchmark, side])
    ours, theirs, result = benchmark.of(names), side.of(names), downstream.of(names)
    warnings = [*side.warnings, *_left_out([benchmark], names), *_left_out([side], names), *_ties(theirs)]
    p_values = permutation_test(theirs.scores, result.scores, seed).p_values
    statistics = _statistics(theirs, result, p_values, seed)
    kept = (_kept([ours, result]), _kept([theirs, result]))
    gaps = differences(ours.scores, theirs.scores, result.scores, kept, seed)
    rhos = [
        float(rank_statistics(one.scores, other.scores)["spearman"][0])
        for one, other in ((ours, result), (theirs, result), (ours, theirs))
    ]
    needed = None if np.isnan(rhos).any() else models_to_distinguish(*rhos)
    said = [f"Baseline {name}: {warning}" for warning in warnings]
    return Baseline(side.source, len(names), statistics, gaps, needed), said


def _bounds(found: Statistic | Difference) -> list[float] | None:
    return None if found.low is None or found.high is None else [found.low, found.high]
