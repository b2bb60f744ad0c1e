"""The mean of accuracy and exact match of rankings, each a mean over categories (CHEEMS, section 3.3).

An exact match is a prompt whose pairs are all right. By the paper it has at least one pair, and ties are wrong; by the
legacy rules of its code, tied scores match, and prompts without a pair count.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from math import factorial, prod

import polars as pl
from pluralbench_measures import rankings
from pluralbench_measures.bootstrap import mean_of

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import COUNTED
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import (
    Drawn,
    ResampledAccuracy,
    accuracy_of,
    cells_in,
    configs_of,
    in_overall,
    separate_strata,
)
from pluralbench.data.rules.rule import Rule, same_weights


def _words(benchmark: Benchmark) -> str:
    exact = "exact match" if benchmark.ties_break_exact_match else "exact match by the legacy rules"
    return f"mean of accuracy and {exact}, each an unweighted mean over categories; unweighted over configs"


def _tables(benchmark: Benchmark, decisions: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the right ones among the pairs of each counted prompt, and whether it is an exact match."""
    scored = decisions.filter(in_overall(benchmark), pl.col("outcome") != "dropped")
    legacy = not benchmark.ties_break_exact_match
    prompts = rankings.by_prompt(scored, ["config", "subset", "id", "cluster"], legacy=legacy).filter(counted=1)
    return {
        "pairs": prompts.with_columns(won="right", of="pairs"),
        "exact": prompts.with_columns(won="exact"),
    }


def chance_of_match(rank: Sequence[int]) -> float:
    """Return the probability that distinct random scores reproduce a ranking, with its ties in any order.

    Of the k! orders of k responses, the product of m! over all groups of m tied responses reproduce it.
    """
    return prod(factorial(rank.count(value)) for value in set(rank)) / factorial(len(rank))


def _chances(benchmark: Benchmark, items: pl.DataFrame, decisions: pl.DataFrame) -> dict[str, pl.DataFrame]:
    ranks = dict(zip(items.select("config", "id").iter_rows(), map(tuple, items["rank"].to_list()), strict=True))
    chances = {rank: chance_of_match(rank) for rank in {*ranks.values()}}
    prompts = _tables(benchmark, decisions)["exact"]
    won = [chances[ranks[place]] for place in prompts.select("config", "id").iter_rows()]
    return {"exact": prompts.with_columns(won=pl.Series(won, dtype=pl.Float64))}


def _outcomes(benchmark: Benchmark) -> Sequence[str]:
    return COUNTED if benchmark.ties_break_exact_match else (*COUNTED, "equal")


def _accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> Iterator[ResampledAccuracy]:
    _, ours = configs_of(benchmark, cells)
    pairs, exact = counts["pairs"], counts["exact"]
    means: dict[str, list[ResampledAccuracy]] = {"accuracy": [], "exact_match": []}
    for config in ours:
        places = cells_in(cells, [config])
        for (metric, values), source in zip(means.items(), (pairs, exact), strict=True):
            mean = rankings.category_mean(source.won[:, places], source.counts[:, places])
            values.append(accuracy_of(MetricKey(metric, config), mean, source, separate_strata(places)))
    accuracy, matched = ([one.values for one in values] for values in means.values())
    every = separate_strata(cells_in(cells, ours))
    yield accuracy_of(MetricKey("overall"), rankings.overall(accuracy, matched), exact, every)
    yield accuracy_of(MetricKey("accuracy"), mean_of(accuracy), pairs, every, exact)
    yield accuracy_of(MetricKey("exact_match"), mean_of(matched), exact, every)
    yield from chain.from_iterable(zip(*means.values(), strict=True))


BY_CATEGORY = Rule(
    "accuracy and exact match",
    _words,
    _accuracies,
    same_weights,
    tables=_tables,
    chances=_chances,
    outcomes=_outcomes,
    part="category",
    pooled={"exact_match": "exact"},
    calibrated=True,
    options=("ties_break_exact_match",),
    legacy={"ties_break_exact_match": False},
)
