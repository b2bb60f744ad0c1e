"""The decisions that two runs share, on clusters that are the same in both."""

import math

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import connected_groups
from pluralbench.data.column_types import BASE, COUNTED
from pluralbench.data.decisions import decisions_of
from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.results.runs import Run

KEYS = ["config", "id", "chosen", "rejected", "repeat"]
VERDICTS = ("verdict_chosen_first", "verdict_rejected_first")
"""Verdicts in both orders, which some benchmarks count one by one (`Benchmark.vote`)."""


def shared_benchmark(first: Run, second: Run) -> Benchmark:
    """Return the benchmark of two runs; of drawn items, that of the run with fewer.

    Raises:
        RunError: If the runs differ in benchmark, in the rule of the overall number or in its weights.
    """
    ours, theirs = (run.config.benchmark for run in (first, second))
    if ours.name != theirs.name:
        raise RunError(
            f"{first.path} is a run of the benchmark {ours.name} and {second.path} of {theirs.name}; compare runs of "
            "one benchmark."
        )
    if ours.rule != theirs.rule or ours.description.sections != theirs.description.sections:
        raise RunError(
            f"{first.path} and {second.path} compute the overall number by different rules ({ours.rule}; "
            f"{theirs.rule}) or weights; score both with the same benchmark and `legacy`."
        )
    return min(
        ours.description,
        theirs.description,
        key=lambda benchmark: sum(stratum.drawn for stratum in benchmark.strata) or math.inf,
    )


def counted_decisions(run: Run) -> pl.DataFrame:
    """Return the decisions that count, and those between tied responses (outcome "equal").

    The column `repeat` numbers the decisions on one pair, which a benchmark may list more than once.
    """
    decisions = decisions_of(run.items).filter(pl.col("outcome").is_in([*COUNTED, "equal"]))
    listed = run.config.benchmark.description.columns.compared is not None
    repeat = pl.int_range(pl.len()).over(*KEYS[:-1]) if listed else pl.lit(0, pl.Int64)
    verdicts = [name for name in VERDICTS if name in decisions.columns]
    return decisions.select(*BASE, "chosen", "rejected", "outcome", "margin", *verdicts, repeat=repeat)


def shared_decisions(
    ours: pl.DataFrame, theirs: pl.DataFrame, first: Run, second: Run, *, differing_text: bool = False
) -> pl.DataFrame:
    """Join the decisions that both runs have, on clusters that are the same in both.

    Raises:
        RunError: If the items differ in texts, subsets or clusters, or none is shared.
    """
    theirs = theirs.rename({name: f"{name}_second" for name in theirs.columns if name not in KEYS})
    both = ours.join(theirs, on=KEYS, how="inner", nulls_equal=True, maintain_order="left")
    both = both.filter((pl.col("outcome") == "equal") == (pl.col("outcome_second") == "equal"))
    if both.filter(pl.col("outcome") != "equal").is_empty():
        configs = [one["config"].unique().sort().to_list() for one in (ours, theirs)]
        named = "" if {*configs[0]} & {*configs[1]} else " (configs {} and {})".format(*map(first_ids, configs))
        raise RunError(f"{first.path} and {second.path} share no decision{named}; compare runs on the same items.")
    _check_shared(both, first, second, differing_text=differing_text)
    return _with_shared_clusters(both, first, second)


def _check_shared(both: pl.DataFrame, first: Run, second: Run, *, differing_text: bool) -> None:
    if not differing_text and (both["digest"] != both["digest_second"]).any():
        raise RunError(
            f"Items of {first.path} and {second.path} have the same ids but different texts; score both on the same "
            "data, or pass `differing_text=True` for two translations."
        )
    other = both.filter(pl.col("subset").ne_missing(pl.col("subset_second")))
    if other.height:
        _refuse_items(other, "subsets", first, second)


def _with_shared_clusters(both: pl.DataFrame, first: Run, second: Run) -> pl.DataFrame:
    """Give the decisions clusters that are the same in both runs.

    Items with the same prompt are one cluster, and further items can join two prompts (such as a translation that both
    share). If the runs have different further items, whatever is one cluster in either run is one cluster here.
    """
    ours, theirs = both["cluster"].to_list(), both["cluster_second"].to_list()
    if len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs)):
        return both
    rules = [clusters_of(run) for run in (first, second)]
    if rules[0] != rules[1]:
        raise RunError(
            f"The clusters of {first.path} are {rules[0]} and those of {second.path} are {rules[1]}; rerun one of them "
            "with the same cluster column."
        )
    if any(run.config.data.clusters is None or run.config.data.clusters.column is not None for run in (first, second)):
        other = both.filter(pl.col("cluster") != pl.col("cluster_second"))
        _refuse_items(other, "clusters (prompts or users)", first, second)
    return both.with_columns(cluster=both["cluster"][connected_groups(both.select("cluster", "cluster_second"))])


def clusters_of(run: Run) -> str:
    """Return what a cluster of a run is, in the plural."""
    clusters = run.config.data.clusters
    return "people" if clusters is None else clusters.name


def _refuse_items(other: pl.DataFrame, what: str, first: Run, second: Run) -> None:
    config, item = other.select("config", "id").row(0)
    raise RunError(
        f"{other.height:,} items have other {what} in {second.path} than in {first.path} (first {config}/{item}); "
        "score both with the same columns."
    )
