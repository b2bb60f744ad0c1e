"""From scores and verdicts to decisions: one row for each pair of responses that the benchmark tells apart."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import polars as pl
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Scored

from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import RunError

OUTCOMES = ("win", "loss", "tie", "invalid", "dropped", "equal")
"""What came of a pair. invalid: no number, or no verdict that could be parsed; dropped: too long to be scored; equal:
the benchmark calls the responses equally good, so nothing can be right or wrong."""

BASE = ("config", "id", "cluster", "subset", "digest")
"""What a decision has of its item."""

CALLS = pl.List(pl.String)
"""Keys of a judge's recorded calls: those of `ledger.parquet`, the tries for one reply in their order."""

DECISIONS = pl.Schema(
    {
        "config": pl.String,
        "id": pl.String,
        "cluster": pl.String,
        "subset": pl.String,
        "chosen": pl.String,
        "rejected": pl.String,
        "outcome": pl.String,
        "margin": pl.Float64,
        "truncated": pl.Boolean,
        "digest": pl.String,
    }
)
_NAMES = {name: pl.String() for name in BASE}
PAIRED: dict[str, pl.DataType] = _NAMES | {
    "truncated": pl.Boolean(),
    "outcome": pl.String(),
    "margin": pl.Float64(),
}
RANKED: dict[str, pl.DataType] = _NAMES | {
    "response": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "tokens_cut": pl.Int64(),
    "outcome": pl.String(),
}
_LENGTH = ("truncated", "tokens_cut", "reason")
SCORED_PAIRED = (*BASE, "score_chosen", "score_rejected", "tokens_chosen", "tokens_rejected", *_LENGTH)
SCORED_RANKED = (*BASE, "response", "rank", "score", "tokens", *_LENGTH, "outcome")
NO_PAIR = (0, 0)
"""In place of the pairs of a ranking whose responses share a rank."""


def decide(items: pl.DataFrame, scores: Sequence[Sequence[float]], cut: Sequence[int] = ()) -> pl.DataFrame:
    """Decisions by scores: the better response wins when its score is strictly higher.

    scores: of each item's responses, or none for an item that was dropped. cut: tokens that each item
    lost; without it none.
    """
    of: list[int] = []
    told: dict[str, list[Any]] = {name: [] for name in ("chosen", "rejected", "outcome", "margin", "truncated")}
    given = items.select("rank", "response_ids").iter_rows()
    for place, ((rank, names), values, lost) in enumerate(zip(given, scores, cut or [0] * len(scores), strict=True)):
        for better, worse in pairs_of(rank) or [NO_PAIR]:
            of.append(place)
            sides = (names[better], names[worse]) if better != worse else (None, None)
            decision = (*sides, *_outcome(values, better, worse), lost > 0)
            for column, value in zip(told.values(), decision, strict=True):
                column.append(value)
    own = items.select(pl.col(name).cast(DECISIONS[name]) for name in BASE)[of]
    return own.hstack(pl.DataFrame(told, schema_overrides=DECISIONS)).select(list(DECISIONS))


def _outcome(values: Sequence[float], better: int, worse: int) -> tuple[str, float | None]:
    if better == worse:
        return "equal", None
    if not values:
        return "dropped", None
    margin = values[better] - values[worse]
    if not isfinite(margin):
        return "invalid", None
    return "win" if margin > 0 else "loss" if margin < 0 else "tie", margin


def score_items(benchmark: Benchmark, items: pl.DataFrame, scored: Scored, decisions: pl.DataFrame) -> pl.DataFrame:
    """`items.parquet` of scores: a row a pair with its decision, or for rankings a row a response.

    items: of the benchmark. scored: their scores. decisions: what `decide` makes of these.
    """
    # By column, which takes a tenth of the time that rows take.
    cut = scored.cut or [0] * items.height
    tokens = scored.tokens or [[]] * items.height
    reasons = [scored.dropped.get(place) for place in range(items.height)]
    length = {"truncated": [lost > 0 for lost in cut], "tokens_cut": cut, "reason": reasons}
    if not benchmark.is_ranking:
        sides = {
            f"{name}_{side}": [values[place] if values else None for values in given]
            for name, given in (("score", scored.scores), ("tokens", tokens))
            for place, side in enumerate(("chosen", "rejected"))
        }
        frame = pl.DataFrame([_own(items[name]) for name in BASE]).hstack(pl.DataFrame(sides | length))
        return frame.select(SCORED_PAIRED).with_columns(decisions["outcome"], decisions["margin"])
    of: list[int] = []
    told: dict[str, list[Any]] = {name: [] for name in ("response", "rank", "score", "tokens", "outcome")}
    given = items.select("response_ids", "rank").iter_rows()
    for place, ((names, ranks), values, sizes) in enumerate(zip(given, scored.scores, tokens, strict=True)):
        none = [None] * len(names)
        for name, rank, value, size in zip(names, ranks, values or none, sizes or none, strict=True):
            valid = "scored" if value is not None and isfinite(value) else "invalid"
            of.append(place)
            row = (name, rank, value, size, valid if values else "dropped")
            for column, entry in zip(told.values(), row, strict=True):
                column.append(entry)
    own = pl.DataFrame([_own(items[name]) for name in BASE]).hstack(pl.DataFrame(length))[of]
    return own.hstack(pl.DataFrame(told)).select(SCORED_RANKED)


def _own(column: pl.Series) -> pl.Series:
    """A column of the items; one without any value has no type in a run's items."""
    return column if column.null_count() < len(column) else pl.Series(column.name, [None] * len(column))


def check_items(items: pl.DataFrame, where: str = "The items", *, of_shard: bool = False) -> pl.DataFrame:
    """The same frame of `items.parquet`. Raises `RunError` for a column that is missing or of another type.

    A row is a pair with its `outcome` and `margin`, or, for rankings, a response with its `rank` and `score`. of_shard:
    there may be no row.
    """
    ranked = "response" in items.columns
    needed = RANKED if ranked else PAIRED
    for name, kind in needed.items():
        found = items.schema.get(name)
        if found is None:
            raise RunError(
                f"{where}: there is no column `{name}`; a run's items need {', '.join(needed)}, and there are "
                f"{', '.join(items.columns) or 'none'}."
            )
        if found not in (kind, pl.Null()):
            raise RunError(f"{where}: the column `{name}` is of type {found}, and not {kind}.")
    if items.is_empty() and not of_shard:
        raise RunError(f"{where}: there is no row.")
    return items


def decisions_of(items: pl.DataFrame) -> pl.DataFrame:
    """The decisions behind a run's `items.parquet`, with `chosen` and `rejected` naming the responses."""
    if "response" not in items.columns:
        named = [] if "chosen" in items.columns else [pl.lit(side).alias(side) for side in ("chosen", "rejected")]
        return items.with_columns(named)
    grouped = items.group_by(*BASE, maintain_order=True).agg(
        response_ids="response",
        rank="rank",
        scores="score",
        cut=pl.col("tokens_cut").max(),
        dropped=(pl.col("outcome") == "dropped").any(),
    )
    scores: list[list[float]] = [
        [] if gone else [float("nan") if value is None else value for value in values]
        for values, gone in grouped.select("scores", "dropped").iter_rows()
    ]
    return decide(grouped, scores, grouped["cut"].fill_null(0).to_list())
