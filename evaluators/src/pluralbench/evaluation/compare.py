"""`compare`: paired tests of two runs on the decisions they share."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.intervals import Linearization
from pluralbench_measures.paired import holm, interval_p_value

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import decisions_of
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey, finest_dimension
from pluralbench.data.rules.accuracies import Counts, ResampledAccuracy
from pluralbench.evaluation.shared_decisions import (
    VERDICTS,
    clusters_of,
    counted_decisions,
    shared_benchmark,
    shared_decisions,
)
from pluralbench.metrics.accuracy import count, linearize_counts, of_overall, resampled_accuracies
from pluralbench.metrics.annotation_differences import annotation_differences
from pluralbench.metrics.decided import Decided
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.names import row_names
from pluralbench.results.numbers import p_value, points
from pluralbench.results.runs import Run, load_run

MIN_TESTED = 10
"""Smallest number of clusters of a part that is tested. Fewer can hardly differ significantly, and each test raises the
adjusted p-values of the others."""
PART = ("metric", "config", "section", "category", "attribute", "group")
"""Columns that name a part."""
DIFFERENCES = pl.Schema(
    dict.fromkeys(PART, pl.String())
    | {name: pl.Float64() for name in ("first", "second", "difference", "low", "high", "p_value", "p_holm")}
    | {"method": pl.String(), "n": pl.Int64(), "clusters": pl.Int64()}
)
"""Columns of `RunComparison.parts`: the name of the number, both numbers, and the test."""


@dataclass(frozen=True)
class Difference:
    """One number of both runs and their difference. Missing values are None.

    Attributes:
        first: The first run's number, from 0 to 1.
        second: The second run's number.
        p_value: Two-sided p-value of no difference. It is below 5% exactly if the interval excludes 0. Of a part, None
            with fewer than `MIN_TESTED` clusters.
    """

    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    method: str | None
    n: int | None
    clusters: int | None
    p_value: float | None

    @classmethod
    def of(cls, first: float | None, second: float | None, estimate: Estimate) -> "Difference":
        """Return two numbers with the estimate of their difference and its p-value."""
        interval = (estimate.low, estimate.high, estimate.method, estimate.n, estimate.clusters)
        return cls(first, second, estimate.value, *interval, interval_p_value(estimate))

    @property
    def estimate(self) -> Estimate:
        """The difference with its interval."""
        return Estimate(self.difference, self.low, self.high, self.n, self.clusters, self.method)

    @property
    def significant(self) -> bool:
        """Whether the difference is beyond chance: the interval excludes 0."""
        return self.p_value is not None and self.p_value < 1 - CONFIDENCE


def difference_sentence(
    names: tuple[str, str], head: Difference, sample: str, no_interval: str = "which are too few for an interval"
) -> str:
    """Say which of two models is better, or that they cannot be told apart."""
    first, second = names
    if head.difference is None:
        return f"{second} and {first} cannot be compared: one of the runs has no overall number."
    difference = f"{second} minus {first} is {points(head.difference)} points"
    if head.low is None or head.high is None or head.p_value is None:
        return f"{difference} {sample}, {no_interval}."
    p = f"p = {p_value(head.p_value)}".replace("= <", "< ")
    ends = f"{points(head.low)} to {points(head.high)}"
    if not head.significant:
        return f"{second} and {first} cannot be told apart {sample}: {difference} (95% interval {ends}, {p})."
    better, worse = (second, first) if head.difference > 0 else (first, second)
    low, high = sorted(100 * abs(end) for end in (head.low, head.high))
    by = f"{100 * abs(head.difference):.1f} points"
    return f"{better} is better than {worse} by {by} {sample} (95% interval {low:.1f} to {high:.1f}, {p})."


@dataclass(frozen=True)
class RunComparison:
    """The differences of two runs on the decisions they share.

    Attributes:
        names: Names of the two models, and in brackets the settings that tell their runs apart.
        rule: Definition of the overall number, as a sentence.
        counted: Number of shared decisions that the overall number uses.
        clustered_by: What a cluster is, in the plural, such as "prompts".
        unreadable: Names of the runs most of whose decisions are invalid, which are not compared.
        close_margins: How many margins of each run are within rounding error (`Run.close_margins`); empty if none is.
        coin: The overall number of a coin on the first run's items; None if the run has none.
        left_out: Decisions that only one run has.
        tested: Number of parts with a p-value; `p_holm` is adjusted for this many.
        parts: One row per config, section, category and group of people, with the columns `DIFFERENCES`. Differences
            are the second run minus the first.
    """

    first: str
    second: str
    names: tuple[str, str]
    benchmark: str
    rule: str
    decisions: int
    counted: int
    clusters: int
    clustered_by: str
    headline: Difference
    only_first: int
    only_second: int
    ties: tuple[int, int]
    invalid: tuple[int, int]
    unreadable: tuple[str, ...]
    close_margins: tuple[str, str]
    mostly_close_margins: tuple[str, str]
    coin: float | None
    left_out: int
    tested: int
    parts: pl.DataFrame

    @property
    def sentence(self) -> str:
        """The overall result: which model is better, or that the two cannot be told apart; and many close margins."""
        close = (f"{name}: {text}." for name, text in zip(self.names, self.mostly_close_margins, strict=True) if text)
        return " ".join([self._result, *close])

    @property
    def _result(self) -> str:
        if self.unreadable:
            (first, second), names = self.names, " and ".join(self.unreadable)
            return f"{second} and {first} cannot be compared: most verdicts or scores of {names} are invalid."
        return difference_sentence(
            self.names, self.headline, f"on these {self.headline.clusters or 0:,} {self.clustered_by}"
        )

    @property
    def untested(self) -> pl.DataFrame:
        """The rows of `parts` without a test: fewer than `MIN_TESTED` clusters, or no interval."""
        return self.parts.filter(pl.col("p_value").is_null())

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, with `parts` as a list of rows."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"headline": asdict(self.headline), "parts": self.parts.to_dicts()}


def compare(first: str | Path | Run, second: str | Path | Run, *, differing_text: bool = False) -> RunComparison:
    """Compare two runs of one benchmark by paired tests on the decisions they share.

    The overall number and its parts are recomputed on the shared decisions. Intervals are over the clusters'
    differences (`pluralbench_measures.intervals`), and each p-value follows from its interval, so that the two always
    agree. Parts with fewer than `MIN_TESTED` clusters are not tested.

    Args:
        first: A run, as `load_run` returns it, or its directory.
        second: Another run of the same benchmark and items.
        differing_text: Allow items with the same id to have different texts, as two translations have.

    Returns:
        The overall difference (`headline`) and a table of the parts (`parts`).

    Raises:
        RunError: If the runs differ in benchmark, overall number, clusters or item texts, or share no decision.
    """
    first, second = (one if isinstance(one, Run) else load_run(one, EvaluationRunConfig) for one in (first, second))
    benchmark = shared_benchmark(first, second)
    ours, theirs = (counted_decisions(run) for run in (first, second))
    both = shared_decisions(ours, theirs, first, second, differing_text=differing_text)
    shared = both.filter(pl.col("outcome") != "equal")
    cells, counts = _counts(benchmark, both)
    names = row_names([first, second])
    unreadable = tuple(name for name, run in zip(names, (first, second), strict=True) if run.unreadable)
    (_, headline), *parts = _differences(benchmark, cells, *counts)
    if unreadable:
        headline, parts = Difference(None, None, None, None, None, None, headline.n, headline.clusters, None), []
    else:
        parts += _annotation_differences(benchmark, both, first, second)
    counted = of_overall(benchmark, shared)
    outcomes = (counted["outcome"], counted["outcome_second"])
    wins = [own == "win" for own in outcomes]
    ties, invalid = (tuple(int((own == name).sum()) for own in outcomes) for name in ("tie", "invalid"))
    parts = [(key, part if (part.clusters or 0) >= MIN_TESTED else replace(part, p_value=None)) for key, part in parts]
    adjusted = holm([part.p_value for _, part in parts])
    rows = [
        {name: getattr(key, name) for name in PART} | asdict(part) | {"p_holm": p}
        for (key, part), p in zip(parts, adjusted, strict=True)
    ]
    return RunComparison(
        first=str(first.path),
        second=str(second.path),
        names=(names[0], names[1]),
        benchmark=first.config.benchmark.name,
        rule=first.config.benchmark.rule,
        decisions=shared.height,
        counted=counted.height,
        clusters=shared["cluster"].n_unique(),
        clustered_by=clusters_of(first),
        headline=headline,
        only_first=int((wins[0] & ~wins[1]).sum()),
        only_second=int((wins[1] & ~wins[0]).sum()),
        ties=(ties[0], ties[1]),
        invalid=(invalid[0], invalid[1]),
        unreadable=unreadable,
        close_margins=(first.close_margins, second.close_margins),
        mostly_close_margins=(first.mostly_close_margins, second.mostly_close_margins),
        coin=first.estimate("overall", baseline="coin").value,
        left_out=sum(own.filter(pl.col("outcome") != "equal").height for own in (ours, theirs)) - 2 * shared.height,
        tested=sum(p is not None for p in adjusted),
        parts=pl.DataFrame(rows, schema=DIFFERENCES),
    )


def _annotation_differences(
    benchmark: Benchmark, both: pl.DataFrame, first: Run, second: Run
) -> list[tuple[MetricKey, Difference]]:
    """Test the agreement with votes of people on the shared items, and the gap between groups of people."""
    shared = both.select("config", "id", "cluster").unique(["config", "id"])
    sides = []
    for run in (first, second):
        items = run.items.drop("cluster").join(shared, on=["config", "id"], how="inner", maintain_order="left")
        decided = Decided(benchmark, decisions_of(items), responses=items, annotations=run.annotations)
        sides.append(decided)
    found = annotation_differences(sides[0], sides[1], f"{first.path} and {second.path}")
    return [(key, Difference.of(ours, theirs, estimate)) for key, ours, theirs, estimate in found]


def overall_difference(
    first: Run, second: Run, ours: pl.DataFrame, theirs: pl.DataFrame, *, differing_text: bool = False
) -> Estimate:
    """Compute the difference of the overall numbers on the shared decisions, with its interval and no test.

    Raises:
        RunError: If the runs cannot be compared; see `compare`.
    """
    benchmark = shared_benchmark(first, second)
    cells, counts = _counts(benchmark, shared_decisions(ours, theirs, first, second, differing_text=differing_text))
    linearized, sides = linearize_counts(*counts)
    before, after = (next(iter(resampled_accuracies(benchmark, cells, side))) for side in sides)
    return linearized.difference(after.values - before.values, before.strata, before.n, before.clusters)


def _counts(benchmark: Benchmark, both: pl.DataFrame) -> tuple[Sequence[Cell], tuple[Counts, Counts]]:
    own = {name: f"{name}_second" for name in ("outcome", "margin", *VERDICTS) if f"{name}_second" in both.columns}
    second = both.drop(VERDICTS, strict=False).with_columns(**{name: pl.col(column) for name, column in own.items()})
    decided = [Decided(benchmark, side) for side in (both, second)]
    return decided[0].cells, (count(decided[0]), count(decided[1]))


def _differences(
    benchmark: Benchmark, cells: Sequence[Cell], first: Counts, second: Counts
) -> list[tuple[MetricKey, Difference]]:
    """Test the overall number, which comes first, and its parts."""
    linearized, sides = linearize_counts(first, second)
    resampled = [resampled_accuracies(benchmark, cells, side) for side in sides]
    # The overall number and its parts: means, configs, sections and categories. A single config is not a part.
    keys = [one.key for one in resampled[0] if not one.key.metric.startswith("pooled")]
    configs = {key for key in keys if finest_dimension(key) == "config"}
    ours = {key for key in configs if key.config not in benchmark.outside_overall}
    tested = {key for key in keys if finest_dimension(key) in {None, "section", "category"}} | (configs - ours)
    if len({key.config for key in ours}) > 1:
        tested |= ours
    pairs = zip(*resampled, strict=True)
    return [(one.key, _difference(linearized, one, other)) for one, other in pairs if one.key in tested]


def _difference(linearized: Linearization, first: ResampledAccuracy, second: ResampledAccuracy) -> Difference:
    estimate = linearized.difference(second.values - first.values, first.strata, first.n, first.clusters)
    ours, theirs = (None if np.isnan(run.values[0]) else float(run.values[0]) for run in (first, second))
    return Difference.of(ours, theirs, estimate)
