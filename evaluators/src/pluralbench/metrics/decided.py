"""The decisions of a run, with what several metrics need of them, computed once."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import item_credits
from pluralbench.data.fields import Cell
from pluralbench.data.votes import Votes

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
        votes: Replies that vote on the same items. None: one reply to each question.
        annotations: Votes of people on the same items, as `annotations_of` returns them. None: the benchmark has none.
        threshold: Smallest certainty of a verdict that counts as high, from 1 to 100.
    """

    benchmark: Benchmark
    decisions: pl.DataFrame
    items: pl.DataFrame | None = None
    responses: pl.DataFrame | None = None
    verdicts: pl.DataFrame | None = None
    votes: Votes | None = None
    annotations: pl.DataFrame | None = None
    threshold: float = THRESHOLD

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of the decisions, sorted."""
        return cells_of(self.decisions)

    @cached_property
    def credited(self) -> pl.DataFrame:
        """What counts and its credit, as `item_credits` returns it."""
        return item_credits(self.benchmark, self.decisions)

    @cached_property
    def valid_credits(self) -> pl.DataFrame:
        """The credits without invalid decisions; if items count by a credit, without items that have any."""
        invalid = pl.col("outcome") == "invalid"
        if not self.decisions.select(invalid.any()).item():
            return self.credited
        without = ~(invalid.any().over("config", "id") if self.benchmark.credits_items else invalid)
        return item_credits(self.benchmark, self.decisions.filter(without))


def cells_of(decisions: pl.DataFrame) -> list[Cell]:
    """Return the cells of decisions, sorted, since a sum over cells depends on their order in its last digits."""
    return list(decisions.select("config", "subset").unique().sort("config", "subset").iter_rows())
