"""`compare`: two runs on the decisions they share, by paired tests of the overall number and of its parts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array, Estimate
from pluralbench_measures.intervals import Perturbed
from pluralbench_measures.paired import exchange, holm, p_value

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import connected_groups
from pluralbench.errors import RunError
from pluralbench.metrics.accuracy import (
    COUNTED,
    Counts,
    Drawn,
    Leaf,
    ResampledAccuracy,
    count,
    leaves_of,
    of_overall,
    perturb_counts,
    resampled_accuracies,
)
from pluralbench.results.decisions import BASE, decisions_of
from pluralbench.results.metrics_frame import METRICS, PLACE, Place
from pluralbench.results.runs import Run

KEYS = ["config", "id", "chosen", "rejected"]
DIFFERENCES = pl.Schema(
    {name: METRICS[name] for name in PLACE}
    | {name: pl.Float64() for name in ("first", "second", "difference", "low", "high", "p_value", "p_holm")}
    | {"n": pl.Int64(), "clusters": pl.Int64(), "method": pl.String()}
)
"""What is said of each part: its place (see `pluralbench.results.metrics_frame`), both runs' numbers and the test."""


@dataclass(frozen=True)
class Difference:
    """A number of both runs, and the second less the first with its interval and p-value, each None where missing.

    method: how the interval was made. p_value: of no difference, two-sided, by exchanging the runs within clusters
    (prompts or users).
    """

    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    method: str | None
    p_value: float | None


@dataclass(frozen=True)
class RunComparison:
    """How two runs differ on the decisions they share.

    first, second: the runs' directories. rule: how the overall number is made. headline: that number of both.
    decisions, clusters: that both runs have; clustered_by: what the clusters are. counted: how many of the decisions
    the overall number is made of; only_first, only_second: how many of these only that run got right.
    left_out: decisions that only one of them has. parts: the same of configs, sections and categories, in the columns
    `DIFFERENCES`. tested: how many parts have a p-value; `p_holm` is adjusted for so many.
    """

    first: str
    second: str
    benchmark: str
    rule: str
    decisions: int
    counted: int
    clusters: int
    clustered_by: str
    headline: Difference
    only_first: int
    only_second: int
    left_out: int
    tested: int
    parts: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain JSON values, `parts` as a list of rows."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"headline": asdict(self.headline), "parts": self.parts.to_dicts()}


def compare(first: Run, second: Run, *, seed: int = 0, differing_text: bool = False) -> RunComparison:
    """Compare two runs of one benchmark by the overall number and its parts, each on the decisions that both have.

    The same numbers are made of both runs' decisions as in their metrics. Intervals are of the differences cluster by
    cluster (see `pluralbench_measures.intervals`), p-values from exchanging the runs within clusters, by the seed.
    differing_text: whether items with the same id may differ in their texts, as those of two translators do.

    Raises `RunError` for runs of other benchmarks, of other sections or weights, on other clusters, on items that
    differ in content, or with no decision in common.
    """
    benchmark = shared_benchmark(first, second)
    ours, theirs = (counted_decisions(run) for run in (first, second))
    both = _both(ours, theirs, first, second, differing_text=differing_text)
    shared = both.filter(pl.col("outcome") != "equal")
    leaves, counts = _counts(benchmark, both)
    differences = _differences(benchmark, leaves, counts[0], counts[1], seed)
    counted = of_overall(benchmark, shared)
    won = [counted["outcome"] == "win", counted["outcome_second"] == "win"]
    (_, headline, _), *parts = differences
    adjusted = holm([found.p_value for _, found, _ in parts])
    rows = [
        place._asdict() | asdict(found) | {"p_holm": p, "n": number.n, "clusters": number.clusters}
        for (place, found, number), p in zip(parts, adjusted, strict=True)
    ]
    return RunComparison(
        first=str(first.path),
        second=str(second.path),
        benchmark=first.config.benchmark.name,
        rule=first.config.benchmark.rule,
        decisions=shared.height,
        counted=counted.height,
        clusters=shared["cluster"].n_unique(),
        clustered_by=_clusters_of(first),
        headline=headline,
        only_first=int((won[0] & ~won[1]).sum()),
        only_second=int((won[1] & ~won[0]).sum()),
        left_out=sum(one.filter(pl.col("outcome") != "equal").height for one in (ours, theirs)) - 2 * shared.height,
        tested=sum(p is not None for p in adjusted),
        parts=pl.DataFrame(rows, schema=DIFFERENCES),
    )


def overall_difference(
    first: Run, second: Run, ours: pl.DataFrame, theirs: pl.DataFrame, *, differing_text: bool = False
) -> Estimate:
    """The overall number of the second run less that of the first on what both have, with its interval and no test.

    ours, theirs: their decisions, see `counted_decisions`. Raises `RunError` as `compare` does.
    """
    benchmark = shared_benchmark(first, second)
    leaves, counts = _counts(benchmark, _both(ours, theirs, first, second, differing_text=differing_text))
    found, sides = perturb_counts(*counts)
    one, other = (next(iter(resampled_accuracies(benchmark, leaves, side))) for side in sides)
    return found.difference(other.values - one.values, one.strata, one.n, one.clusters)


def _both(
    ours: pl.DataFrame, theirs: pl.DataFrame, first: Run, second: Run, *, differing_text: bool = False
) -> pl.DataFrame:
    """The decisions that both runs have, on clusters that are the same in both."""
    both = ours.join(theirs, on=KEYS, how="inner", suffix="_second", nulls_equal=True, maintain_order="left")
    both = both.filter((pl.col("outcome") == "equal") == (pl.col("outcome_second") == "equal"))
    if both.filter(pl.col("outcome") != "equal").is_empty():
        raise RunError(f"{first.path} and {second.path} have no decision in common, so they cannot be compared.")
    _check_shared(both, first, second, differing_text=differing_text)
    return _with_shared_clusters(both, first, second)


def _counts(benchmark: Benchmark, both: pl.DataFrame) -> tuple[Sequence[Leaf], tuple[Counts, Counts]]:
    leaves = leaves_of(both)
    second = both.with_columns(outcome="outcome_second")
    return leaves, (count(benchmark, both, leaves), count(benchmark, second, leaves))


def shared_benchmark(first: Run, second: Run) -> Benchmark:
    """What both runs are of. Raises `RunError` where these differ."""
    one, other = (run.config.benchmark for run in (first, second))
    if one.name != other.name:
        raise RunError(f"{first.path} is of the benchmark {one.name} and {second.path} of {other.name}.")
    if one.rule != other.rule or one.description.sections != other.description.sections:
        raise RunError(
            f"The overall numbers of {first.path} and {second.path} are made by different rules ({one.rule}; "
            f"{other.rule}) or weights; score both with the same benchmark and the same --legacy."
        )
    return one.description


def counted_decisions(run: Run) -> pl.DataFrame:
    """Decisions that count, and those between responses that the benchmark calls equal."""
    found = decisions_of(run.items).filter(pl.col("outcome").is_in([*COUNTED, "equal"]))
    return found.select(*BASE, "chosen", "rejected", "outcome")


def _check_shared(both: pl.DataFrame, first: Run, second: Run, *, differing_text: bool) -> None:
    if not differing_text and (both["digest"] != both["digest_second"]).any():
        raise RunError(
            f"{first.path} and {second.path} share ids, but their items differ in content; score both on the same "
            "data, or compare them all the same with --differing-text, as for two translations of the same items."
        )
    other = both.filter(pl.col("subset").ne_missing(pl.col("subset_second")))
    if other.height:
        _refuse_items(other, "are in other subsets", first, second)


def _with_shared_clusters(both: pl.DataFrame, first: Run, second: Run) -> pl.DataFrame:
    """The decisions on clusters that are the same in both runs.

    Items of one prompt are one cluster, and further items can join two prompts (as a translation that both share
    does), so where the runs have other items besides, what either has as one is one. Raises `RunError` where the runs
    took other things for clusters.
    """
    ours, theirs = both["cluster"].to_list(), both["cluster_second"].to_list()
    if len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs)):
        return both
    rules = [_clusters_of(run) for run in (first, second)]
    if rules[0] != rules[1]:
        raise RunError(
            f"The clusters of {first.path} are {rules[0]}, and those of {second.path} are {rules[1]}, so they cannot "
            "be compared; make one of them again, with the same --column cluster."
        )
    if any(run.config.data.clusters is None or run.config.data.clusters.column is not None for run in (first, second)):
        _refuse_items(
            both.filter(pl.col("cluster") != pl.col("cluster_second")),
            "belong to other prompts or users",
            first,
            second,
        )
    return both.with_columns(cluster=both["cluster"][connected_groups(both.select("cluster", "cluster_second"))])


def _clusters_of(run: Run) -> str:
    clusters = run.config.data.clusters
    if clusters is not None:
        return clusters.name
    return "people"


def _refuse_items(other: pl.DataFrame, what: str, first: Run, second: Run) -> None:
    config, item = other.select("config", "id").row(0)
    raise RunError(
        f"In {second.path}, {other.height:,} items {what} than in {first.path} (first {config}/{item}); score both "
        "with the same columns."
    )


def _differences(
    benchmark: Benchmark, leaves: Sequence[Leaf], first: Counts, second: Counts, seed: int
) -> list[tuple[Place, Difference, ResampledAccuracy]]:
    """The overall number first, then the parts."""
    found, sides = perturb_counts(first, second)
    raised = [resampled_accuracies(benchmark, leaves, one) for one in sides]
    exchanged = [resampled_accuracies(benchmark, leaves, one) for one in _exchanged(first, second, seed)]
    # The overall number and its parts: means, configs, sections and categories; a single config is no part.
    configs = {one.place for one in raised[0] if one.place.group == "config"}
    wanted = {one.place for one in raised[0] if one.place.group in {"overall", "excluded", "section", "category"}}
    if len({place.config for place in configs}) > 1:
        wanted |= configs
    rows = zip(*raised, *exchanged, strict=True)
    return [
        (one.place, _difference(found, one, other, tested.values - base.values), one)
        for one, other, base, tested in rows
        if one.place in wanted
    ]


def _exchanged(first: Counts, second: Counts, seed: int) -> tuple[Drawn, Drawn]:
    pairs = {name: exchange(first[name], second[name], seed) for name in first}
    return {name: one for name, (one, _) in pairs.items()}, {name: other for name, (_, other) in pairs.items()}


def _difference(
    perturbed: Perturbed, first: ResampledAccuracy, second: ResampledAccuracy, exchanged: Array
) -> Difference:
    found = perturbed.difference(second.values - first.values, first.strata, first.n, first.clusters)
    ours, theirs = (None if np.isnan(one.values[0]) else float(one.values[0]) for one in (first, second))
    return Difference(ours, theirs, found.value, found.low, found.high, found.method, p_value(exchanged))
