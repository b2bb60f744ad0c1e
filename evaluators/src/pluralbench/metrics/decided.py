"""The decisions of a run, with what several metrics need of them, computed once."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.credits import item_credits

Leaf = tuple[str, str | None]
"""A config and one of its subsets: the smallest weighted part of a benchmark."""
THRESHOLD = 80
"""Smallest certainty that counts as high."""


@dataclass(frozen=True)
class Decided:
    """Decisions of a run, and the tables that some metrics need besides.

    Attributes:
        benchmark: Description of the benchmark.
        decisions: Decisions as `pluralbench.data.decisions.decide` returns them. Judges add their verdicts; see
            `metrics.position`.
        items: Items of the benchmark, for the baselines. None: no baselines.
        responses: Rows of `items.parquet`, for metrics of all responses. None: none of these.
        verdicts: Verdicts of a persona judge on the same items, as `check_verdicts` returns them.
        threshold: Smallest certainty of a verdict that counts as high, from 1 to 100.
    """

    benchmark: Benchmark
    decisions: pl.DataFrame
    items: pl.DataFrame | None = None
    responses: pl.DataFrame | None = None
    verdicts: pl.DataFrame | None = None
    threshold: float = THRESHOLD

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The leaves of the decisions, in order of occurrence."""
        return list(self.decisions.select("config", "subset").unique(maintain_order=True).iter_rows())

    @cached_property
    def credited(self) -> pl.DataFrame | None:
        """What counts and its credit, as `item_credits` returns it; None if each decision counts by itself."""
        return item_credits(self.benchmark, self.decisions) if self.benchmark.credits_items else None

    @cached_property
    def valid_credits(self) -> pl.DataFrame | None:
        """The credits of the items without an invalid decision; None if each decision counts by itself."""
        if self.credited is None or not (self.decisions["outcome"] == "invalid").any():
            return self.credited
        valid = (pl.col("outcome") != "invalid").all().over("config", "id")
        return item_credits(self.benchmark, self.decisions.filter(valid))
