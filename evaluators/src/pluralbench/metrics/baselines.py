"""Baselines: the scores of a coin, the longer response and the shorter response on a model's items.

Length is in characters, and equal lengths are ties. The coin's number is its expected value, which has no interval.
Baselines include items that a model's run dropped.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, Resampled, Sums

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import chance_credits
from pluralbench.data.decisions import decide
from pluralbench.data.rules import rule_of
from pluralbench.metrics.accuracy import (
    accuracy_estimates,
    count,
    count_tables,
    resampled_accuracies,
)
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.languages import language_accuracies
from pluralbench.metrics.metric import BASELINES, Numbers, with_baseline

COIN, LONGER, SHORTER, _ = BASELINES


def baseline_numbers(decided: Decided) -> Numbers:
    """Yield all accuracies, exact matches and overall numbers of the baselines, with the dimension `baseline`."""
    if decided.items is None or not rule_of(decided.benchmark).has_baselines:
        return
    if decided.verdicts is None:
        yield from _of_responses(decided.benchmark, decided.items)
    else:
        yield from _of_options(decided, decided.items, options=int(decided.verdicts["options"][0]))


def _of_responses(benchmark: Benchmark, items: pl.DataFrame) -> Numbers:
    # One after the other, to hold only one table of all decisions in memory.
    yield from _by_decisions(Decided(benchmark, _by_length(items, 1)), LONGER)
    shorter = Decided(benchmark, _by_length(items, -1))
    yield from _by_decisions(shorter, SHORTER)
    chances = rule_of(benchmark).chances(benchmark, items, shorter.decisions)
    yield from _coin(shorter, 0.5, chances)  # only the number of decisions matters


def _by_length(items: pl.DataFrame, sign: int) -> pl.DataFrame:
    """Decide for the longer response (`sign` 1) or the shorter one (-1), by characters."""
    characters = pl.element().str.len_chars().cast(pl.Float64)
    return decide(items, items["responses"].list.eval(sign * characters))


def _of_options(decided: Decided, items: pl.DataFrame, *, options: int) -> Numbers:
    """Yield the baselines of the persona judge, of one decision per item, with its `truth`, in the items' order.

    The third of `options` is that neither option is right.
    """
    benchmark, decisions = decided.benchmark, decided.decisions
    first, second = (items[name].str.len_chars().cast(pl.Int64) for name in ("option_a", "option_b"))
    for baseline, longer in ((LONGER, pl.lit(first - second)), (SHORTER, pl.lit(second - first))):
        equal = pl.lit("C" if options > 2 else None, pl.String)
        answer = pl.when(longer > 0).then(pl.lit("A")).when(longer < 0).then(pl.lit("B")).otherwise(equal)
        right = pl.when(answer == pl.col("truth")).then(pl.lit("win")).otherwise(pl.lit("loss"))
        outcome = pl.when(answer.is_null()).then(pl.lit("tie")).otherwise(right)
        yield from _by_decisions(Decided(benchmark, decisions.with_columns(outcome=outcome)), baseline)
    yield from _coin(Decided(benchmark, decisions.with_columns(outcome=pl.lit("loss"))), 1 / options, {})


def _by_decisions(decided: Decided, baseline: str) -> Numbers:
    yield from with_baseline(accuracy_estimates(decided), baseline)
    yield from with_baseline(_accuracies(decided), baseline)


def _accuracies(decided: Decided) -> Numbers:
    return ((key, estimate) for key, estimate in language_accuracies(decided) if key.metric == "accuracy")


def _coin(decided: Decided, chance: float, chances: Mapping[str, pl.DataFrame]) -> Numbers:
    """`chances`: tables in which random scores win another share than `chance`."""
    benchmark, cells = decided.benchmark, decided.cells
    expected = {name: Sums(chance * sums.counts, sums.counts) for name, sums in count(decided).items()}
    if benchmark.credit:
        credited = chance_credits(benchmark, decided.decisions).rename({"credit": "won"})
        chances = {**chances, "decisions": credited}
    for name, rows in chances.items():
        expected |= count_tables({name: rows}, cells)
    for one in resampled_accuracies(benchmark, cells, {name: _as_measured(sums) for name, sums in expected.items()}):
        value = None if np.isnan(one.values[0]) else float(one.values[0])
        yield one.key._replace(baseline=COIN), Estimate(value, n=one.n, clusters=one.clusters)
    for key, estimate in _accuracies(decided):
        value = None if estimate.value is None else chance
        yield key._replace(baseline=COIN), Estimate(value, n=estimate.n, clusters=estimate.clusters)


def _as_measured(sums: Sums) -> Resampled:
    # A sum of credits depends on their order in its last digits.
    return Resampled(np.sort(sums.won, axis=0).sum(0)[None], sums.counts.sum(0)[None], sums.counts > 0)
