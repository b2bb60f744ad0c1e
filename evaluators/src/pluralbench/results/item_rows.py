"""The columns of a run's `items.parquet`, and checks of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from pluralbench.data.annotations import annotations_schema
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import BASE, DECISIONS, OUTCOMES, schema_of
from pluralbench.data.decisions import (
    COMPARED,
    JUDGED,
    JUDGED_PERSONAS,
    SCORED,
    SCORED_PAIRED,
    SCORED_RANKED,
    SOFT,
    SOFT_PERSONAS,
)
from pluralbench.data.layouts import records_responses
from pluralbench.data.rules import rule_of
from pluralbench.errors import RunError
from pluralbench.results.evaluations import EvaluationRunConfig

FILLED = ("config", "id", "cluster", "digest", "outcome")
"""Columns without empty values in every run."""

PAIRED = schema_of(*BASE, "truncated", "outcome", "margin")
RANKED = schema_of(*BASE, "response", "rank", "score", "tokens_cut", "outcome")


def item_columns(config: EvaluationRunConfig, items: pl.DataFrame) -> pl.Schema:
    """Return the columns of `items.parquet` of a run, with their types.

    The frame's verdicts tell a run of `score` with a model that only compares responses.
    """
    protocol, soft = config.judge_setting("protocol"), config.judge_setting("logprobs")
    if config.verb == "judge-personas":
        return pl.Schema({**JUDGED_PERSONAS, **SOFT_PERSONAS}) if soft else JUDGED_PERSONAS
    if protocol == "pairwise":
        return pl.Schema({**JUDGED, **SOFT}) if soft else JUDGED
    if config.verb == "score" and "verdict" in items.columns:
        return COMPARED
    ranked = records_responses(config.benchmark.description)
    names = SCORED_RANKED if ranked else (*SCORED_PAIRED, "outcome", "margin")
    calls = ("calls",) if ranked else ("calls_chosen", "calls_rejected")
    position = ("position",) if protocol == "listwise" and ranked else ()
    compared = ("compared",) if config.benchmark.description.columns.compared is not None else ()
    settled = rule_of(config.benchmark.description).settled
    return schema_of(*names, *compared, *settled, *position, *(() if protocol is None else calls))


def check_items(items: pl.DataFrame, config: EvaluationRunConfig, where: str = "The items") -> pl.DataFrame:
    """Check the frame of `items.parquet`, and cast its columns to the types of `item_columns`.

    A row is a pair with `outcome` and `margin`, or, for rankings, a response with `rank` and `score`, plus the columns
    of a judge. The scores behind a margin may be missing.

    Raises:
        RunError: A column is missing or has another type, a required value is empty, an outcome or a margin is not
            valid, the rows of an item differ in what it has once, or there are no rows.
    """
    kinds = DECISIONS | item_columns(config, items)
    needed = kinds if "verdict" in kinds else RANKED if "response" in items.columns else PAIRED
    needed = needed | schema_of(*rule_of(config.benchmark.description).settled)
    items = cast_columns(items, RANKED | PAIRED | kinds | schema_of("compared"), where, needed)
    if items.is_empty() and config.data.shard is None:
        raise RunError(f"{where}: the table has no rows.")
    for name in (*FILLED, *(("response", "rank") if "rank" in needed else ())):
        if items[name].has_nulls():
            raise RunError(f"{where}: the column `{name}` is empty in some rows.")
    # A choice that was a tie rejects no option.
    for name in ("chosen",) if "choice" in kinds else ("chosen", "rejected"):
        if name in items.columns and items.filter(pl.col("outcome") != "equal")[name].has_nulls():
            raise RunError(f"{where}: the column `{name}` is empty in some rows that are not equal.")
    if "margin" in items.columns and not items["margin"].drop_nulls().is_finite().all():
        raise RunError(f"{where}: a margin is not a finite number.")
    if "threshold" in needed and (items["threshold"].n_unique() > 1 or not items["threshold"].is_finite().all()):
        raise RunError(f"{where}: `threshold` is not one finite number.")
    if items.group_by("config").agg(pl.col("id").n_unique())["id"].sum() < items.height:
        of_items = items.select(BASE).unique(maintain_order=True)
        mixed = of_items.filter(of_items.select("config", "id").is_duplicated())["id"]
        if len(mixed):
            raise RunError(f"{where}: the rows of id {mixed[0]} differ in cluster, subset or digest.")
    known = (*OUTCOMES, SCORED) if "rank" in needed else OUTCOMES
    unknown = items.filter(~pl.col("outcome").is_in(known))["outcome"]
    if len(unknown):
        raise RunError(f"{where}: the outcome {unknown[0]!r} is not one of {', '.join(known)}.")
    return items


def check_annotations(frame: pl.DataFrame, benchmark: Benchmark, where: str) -> pl.DataFrame:
    """Check the frame of `annotations.parquet`, and cast its columns to the types of `annotations_schema`.

    Raises:
        RunError: A column is missing or has another type, a vote has no item or is for a negative place.
    """
    if benchmark.annotations is None:
        raise RunError(f"{where}: the benchmark {benchmark.title} has no votes of people.")
    kinds = annotations_schema(benchmark.annotations)
    votes = cast_columns(frame, kinds, where, kinds)
    for name in ("config", "id"):
        if votes[name].has_nulls():
            raise RunError(f"{where}: the column `{name}` is empty in some rows.")
    if not (votes["response"].drop_nulls() >= 0).all():
        raise RunError(f"{where}: the response of a vote is below 0, the place of the first.")
    return votes


def votes_on_items(votes: pl.DataFrame, items: pl.DataFrame, where: str) -> pl.DataFrame:
    """Return the votes. Raises `RunError` if one is on an item or a response that is not there, or an item has none."""
    size = pl.len() if "response" in items.columns else pl.lit(2, pl.UInt32)
    sizes = items.group_by("config", "id", maintain_order=True).agg(size=size)
    joined = votes.join(sizes, on=["config", "id"], how="left", maintain_order="left")
    other = joined.filter(pl.col("size").is_null())["id"]
    if len(other):
        raise RunError(f"{where} has votes on id {other[0]}, which is not among the items.")
    beyond = joined.filter(pl.col("response") >= pl.col("size"))["id"]
    if len(beyond):
        raise RunError(f"{where}: a vote on id {beyond[0]} is for a response that the item does not have.")
    without = sizes.join(votes, on=["config", "id"], how="anti", maintain_order="left")["id"]
    if len(without):
        raise RunError(f"{where} has no vote on id {without[0]}.")
    return votes


def cast_columns(frame: pl.DataFrame, kinds: Mapping[str, Any], where: str, needed: Iterable[str]) -> pl.DataFrame:
    """Cast the columns without values, which have no type in a file, and check the others.

    Raises:
        RunError: A required column is missing, or a column has another type.
    """
    missing = next((name for name in needed if name not in frame.columns), None)
    if missing is not None:
        raise RunError(
            f"{where}: the column `{missing}` is missing; the columns are {', '.join(frame.columns) or 'none'}."
        )
    for name, kind in kinds.items():
        if frame.schema.get(name, kind) not in (kind, pl.Null()):
            raise RunError(f"{where}: the column `{name}` is of type {frame.schema[name]}, not {kind}.")
    return frame.cast({name: kinds[name] for name, kind in frame.schema.items() if kind == pl.Null() and name in kinds})
