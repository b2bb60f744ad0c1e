"""What a rule of an overall number is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from pluralbench_rewards import OnScored

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import COUNTED
from pluralbench.data.fields import Cell
from pluralbench.data.rules.accuracies import Drawn, ResampledAccuracy

Sizes = Mapping[str, Mapping[str | None, int]]
"""Number of items of each subset of each config behind the overall number."""
Weights = dict[Cell, float]
"""Weights of subsets in the overall number, which add up to 1; none if data lacks a part of it."""


class Rule(NamedTuple):
    """A rule of an overall number: from the decisions of a run to the number.

    Attributes:
        name: Value of `Benchmark.overall`.
        words: Returns the rule as a phrase.
        accuracies: Yields the overall number and the accuracies behind it, in each row of the counts.
        weights: Returns the weights of subsets by which items are drawn.
        tables: Returns what it counts beside decisions, by name: rows with the share `won` (`of` a number, or of 1).
        chances: Returns those of these tables in which random scores win another share than decisions, with it.
        outcomes: Returns the outcomes of decisions that count.
        settle: Adds the columns `settled` to the scores of responses, by which these become decisions. None: pairs of
            responses of different ranks are decisions.
        check: Raises `BenchmarkError` for items that it cannot count, or cannot if they are only a part.
        checking: Returns a recorder of a model's scores that first checks them.
        metric: Metric of a config that enters the overall number.
        part: Dimension of the smallest parts, the values of the column `subset`.
        parts: Subsets that a config needs to have a number.
        pooled: Metrics that each part has beside the accuracy, with the table of each.
        by_config: Whether the overall number is a mean over configs.
        has_baselines: Whether a coin or the length of a response can decide.
        calibrated: Whether runs have the calibration of their scores.
        columns: Fields of `Columns` that this rule requires, and no other rule accepts.
        options: Fields of `Benchmark` that only this rule reads.
        legacy: Values of fields for `legacy=True`.
    """

    name: str
    words: Callable[[Benchmark], str]
    accuracies: Callable[[Benchmark, Sequence[Cell], Drawn], Iterable[ResampledAccuracy]]
    weights: Callable[[Benchmark, Sizes], Weights]
    tables: Callable[[Benchmark, pl.DataFrame], dict[str, pl.DataFrame]] = lambda benchmark, decisions: {}
    chances: Callable[[Benchmark, pl.DataFrame, pl.DataFrame], dict[str, pl.DataFrame]] = (
        lambda benchmark, items, decisions: {}
    )
    outcomes: Callable[[Benchmark], Sequence[str]] = lambda benchmark: COUNTED
    settle: Callable[[Benchmark, pl.DataFrame], pl.DataFrame] | None = None
    settled: tuple[str, ...] = ()
    check: Callable[..., None] = lambda benchmark, items, *, part: None
    checking: Callable[[Benchmark, str, OnScored], OnScored] = lambda benchmark, model, on_scored: on_scored
    metric: str = "accuracy"
    part: str = "subset"
    parts: tuple[str, ...] = ()
    pooled: Mapping[str, str] = {}
    by_config: bool = True
    has_baselines: bool = True
    calibrated: bool = False
    columns: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    legacy: Mapping[str, Any] = {}


def weights_over_configs(within: Mapping[str, Mapping[str | None, float]]) -> Weights:
    """Give each config the same weight: those `within` a config are of its own number, all 0 if data lacks a part."""
    if not all(any(own.values()) for own in within.values()):
        return {}
    return {(config, subset): weight / len(within) for config, own in within.items() for subset, weight in own.items()}


def same_weights(benchmark: Benchmark, sizes: Sizes) -> Weights:
    """Give each config, and in it each subset, the same weight."""
    return weights_over_configs({config: dict.fromkeys(own, 1 / len(own)) for config, own in sizes.items()})
