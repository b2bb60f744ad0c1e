"""What a coin, the longer answer and the shorter answer get on the items that a model was scored on.

Each is a scorer like any other: by the length of the responses in characters, ties being ties; of a coin the expected
value, which has no interval, since it is known. They are over all items, also those that a model's run dropped.
"""

from collections.abc import Sequence
from math import factorial, prod

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, Resampled, Sums

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import (
    accuracy_estimates,
    count,
    leaves_of,
    prompts_of,
    resampled_accuracies,
    sums_by_leaf,
)
from pluralbench.metrics.languages import language_accuracies
from pluralbench.results.decisions import decide
from pluralbench.results.metrics_frame import Numbers

COIN, LONGER, SHORTER = REFERENCES = ("coin", "longer", "shorter")
LETTERS = {1: "A", -1: "B", 0: "C"}


def reference_metric(metric: str, reference: str) -> str:
    """What a reference's number is called: an accuracy by its own name, another by what it is of."""
    return reference if metric == "accuracy" else f"{metric}_of_{reference}"


def reference_numbers(benchmark: Benchmark, items: pl.DataFrame) -> Numbers:
    """The references at each place that has `accuracy`, `exact_match` or `overall`.

    items: of the benchmark, with their `responses` and `rank`.
    """
    # One after the other, so that one table of all decisions is there at once beside the texts.
    yield from _numbers(benchmark, _by_length(items, 1), LONGER)
    shorter = _by_length(items, -1)
    yield from _numbers(benchmark, shorter, SHORTER)
    ranks = items["rank"].to_list()
    chances = {rank: chance_of_match(rank) for rank in {*map(tuple, ranks)}}
    places = items.select("config", "id").iter_rows()
    matched = {place: chances[tuple(rank)] for place, rank in zip(places, ranks, strict=True)}
    yield from _coin(benchmark, shorter, 0.5, matched)  # who wins changes nothing


def _by_length(items: pl.DataFrame, sign: int) -> pl.DataFrame:
    """Decisions for the longer response (1) or the shorter one (-1), by characters."""
    characters = pl.element().str.len_chars().cast(pl.Float64)
    return decide(items, items["responses"].list.eval(sign * characters))


def persona_references(benchmark: Benchmark, decisions: pl.DataFrame, items: pl.DataFrame, *, options: int) -> Numbers:
    """Those of the persona judge, where an answer is one of so many options, the third being that neither is right.

    decisions: a row an item, with its `truth`. items: in the same order, with `option_a` and `option_b`.
    """
    lengths = items.select(pl.col("option_a", "option_b").str.len_chars().cast(pl.Int64))
    apart = np.sign((lengths["option_a"] - lengths["option_b"]).to_numpy()).astype(int)
    for reference, ways in ((LONGER, apart), (SHORTER, -apart)):
        said = pl.Series([LETTERS[way] if options > 2 or way else None for way in ways.tolist()], dtype=pl.String)
        right = (said == decisions["truth"]).fill_null(value=False)
        outcome = pl.select(
            pl.when(said.is_null()).then(pl.lit("tie")).when(right).then(pl.lit("win")).otherwise(pl.lit("loss"))
        )
        yield from _numbers(benchmark, decisions.with_columns(outcome.to_series().alias("outcome")), reference)
    yield from _coin(benchmark, decisions.with_columns(outcome=pl.lit("loss")), 1 / options, {})


def chance_of_match(rank: Sequence[int]) -> float:
    """How likely scores drawn at random, no two of them the same, keep a ranking whose ties may be in any order.

    Of the k! orders of k responses these are the products of m! over groups of m responses that share a rank.
    """
    return prod(factorial(rank.count(value)) for value in set(rank)) / factorial(len(rank))


def _numbers(benchmark: Benchmark, decisions: pl.DataFrame, reference: str) -> Numbers:
    for found in (
        accuracy_estimates(benchmark, leaves_of(decisions), decisions),
        language_accuracies(benchmark, decisions),
    ):
        for place, estimate in found:
            if place.metric not in {"languages", "variance"}:
                yield place._replace(metric=reference_metric(place.metric, reference)), estimate


def _coin(
    benchmark: Benchmark, decisions: pl.DataFrame, chance: float, matched: dict[tuple[str, str], float]
) -> Numbers:
    """matched: how likely an exact match of each prompt is."""
    leaves = leaves_of(decisions)
    counts = count(benchmark, decisions, leaves)
    expected = {name: Sums(chance * sums.counts, sums.counts) for name, sums in counts.items()}
    if benchmark.by_category:
        prompts = prompts_of(benchmark, decisions)
        won = pl.Series([matched[row] for row in prompts.select("config", "id").iter_rows()], dtype=pl.Float64)
        expected["exact"] = sums_by_leaf(prompts, leaves, won)
    for one in resampled_accuracies(benchmark, leaves, {name: _as_it_is(sums) for name, sums in expected.items()}):
        value = None if np.isnan(one.values[0]) else float(one.values[0])
        yield (
            one.place._replace(metric=reference_metric(one.place.metric, COIN)),
            Estimate(value, n=one.n, clusters=one.clusters),
        )
    for place, found in language_accuracies(benchmark, decisions):
        if place.metric == "accuracy":
            value = None if found.value is None else chance
            yield place._replace(metric=COIN), Estimate(value, n=found.n, clusters=found.clusters)


def _as_it_is(sums: Sums) -> Resampled:
    return Resampled(sums.won.sum(0)[None], sums.counts.sum(0)[None], sums.counts > 0)
