"""Baselines: the scores of a coin, the longer response and the shorter response on a model's items.

Length is in characters, and equal lengths are ties. The coin's number is its expected value, which has no interval.
Baselines include items that a model's run dropped.
"""

from collections.abc import Sequence
from math import factorial, prod

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, Resampled, Sums

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import decide
from pluralbench.metrics.accuracy import (
    accuracy_estimates,
    count,
    prompts_of,
    resampled_accuracies,
    sums_by_cell,
)
from pluralbench.metrics.credits import chance_credits
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.languages import language_accuracies
from pluralbench.metrics.metric import BASELINES, Numbers, with_baseline

COIN, LONGER, SHORTER, _ = BASELINES


def baseline_numbers(decided: Decided) -> Numbers:
    """Yield all accuracies, exact matches and overall numbers of the baselines, with the dimension `baseline`."""
    if decided.items is None or decided.benchmark.in_steps:  # neither a coin nor a length tells a wrong step
        return
    if decided.verdicts is None:
        yield from _of_responses(decided.benchmark, decided.items)
    else:
        yield from _of_options(decided, decided.items, options=int(decided.verdicts["options"][0]))


def _of_responses(benchmark: Benchmark, items: pl.DataFrame) -> Numbers:
    """`items`: items with `responses` and `rank`."""
    # One after the other, to hold only one table of all decisions in memory.
    yield from _by_decisions(Decided(benchmark, _by_length(items, 1)), LONGER)
    shorter = Decided(benchmark, _by_length(items, -1))
    yield from _by_decisions(shorter, SHORTER)
    rankings = items.select("config", "id", "rank") if benchmark.by_category else items.clear()  # else none is counted
    ranks = rankings["rank"].to_list()
    chances = {rank: chance_of_match(rank) for rank in {*map(tuple, ranks)}}
    places = rankings.select("config", "id").iter_rows()
    matched = {place: chances[tuple(rank)] for place, rank in zip(places, ranks, strict=True)}
    yield from _coin(shorter, 0.5, matched)  # only the number of decisions matters


def _by_length(items: pl.DataFrame, sign: int) -> pl.DataFrame:
    """Decide for the longer response (`sign` 1) or the shorter one (-1), by characters."""
    characters = pl.element().str.len_chars().cast(pl.Float64)
    return decide(items, items["responses"].list.eval(sign * characters))


def _of_options(decided: Decided, items: pl.DataFrame, *, options: int) -> Numbers:
    """Yield the baselines of the persona judge.

    Args:
        decided: One decision per item, with its `truth`.
        items: Items in the same order, with `option_a` and `option_b`.
        options: Number of possible answers; the third is that neither option is right.
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


def chance_of_match(rank: Sequence[int]) -> float:
    """Return the probability that distinct random scores reproduce a ranking, with its ties in any order.

    Of the k! orders of k responses, the product of m! over all groups of m tied responses reproduce it.
    """
    return prod(factorial(rank.count(value)) for value in set(rank)) / factorial(len(rank))


def _by_decisions(decided: Decided, baseline: str) -> Numbers:
    yield from with_baseline(accuracy_estimates(decided), baseline)
    yield from with_baseline(_accuracies(decided), baseline)


def _accuracies(decided: Decided) -> Numbers:
    """Yield the accuracies by kind of language."""
    return ((key, estimate) for key, estimate in language_accuracies(decided) if key.metric == "accuracy")


def _coin(decided: Decided, chance: float, matched: dict[tuple[str, str], float]) -> Numbers:
    """`matched`: probability of an exact match by prompt."""
    benchmark, decisions, cells = decided.benchmark, decided.decisions, decided.cells
    counts = count(decided)
    expected = {name: Sums(chance * sums.counts, sums.counts) for name, sums in counts.items()}
    if benchmark.credit:
        drawn = chance_credits(benchmark, decisions)
        expected["decisions"] = sums_by_cell(drawn, cells, drawn["credit"])
    if benchmark.by_category:
        prompts = prompts_of(benchmark, decisions)
        won = pl.Series([matched[row] for row in prompts.select("config", "id").iter_rows()], dtype=pl.Float64)
        expected["exact"] = sums_by_cell(prompts, cells, won)
    for one in resampled_accuracies(benchmark, cells, {name: _as_measured(sums) for name, sums in expected.items()}):
        value = None if np.isnan(one.values[0]) else float(one.values[0])
        yield one.key._replace(baseline=COIN), Estimate(value, n=one.n, clusters=one.clusters)
    for key, estimate in _accuracies(decided):
        value = None if estimate.value is None else chance
        yield key._replace(baseline=COIN), Estimate(value, n=estimate.n, clusters=estimate.clusters)


def _as_measured(sums: Sums) -> Resampled:
    # A sum of credits depends on their order in its last digits.
    return Resampled(np.sort(sums.won, axis=0).sum(0)[None], sums.counts.sum(0)[None], sums.counts > 0)
