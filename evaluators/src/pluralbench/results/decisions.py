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
    of, pairs, truncated, found = [], [], [], []
    given = items.select("rank", "response_ids").iter_rows()
    for place, ((rank, names), values, lost) in enumerate(zip(given, scores, cut or [0] * len(scores), strict=True)):
        for better, worse in pairs_of(rank) or [NO_PAIR]:
            of.append(place)
            truncated.append(lost > 0)
            pairs.append((names[better], names[worse]) if better != worse else (None, None))
            found.append(_outcome(values, better, worse))
    told = {
        "truncated": truncated,
        "chosen": [better for better, _ in pairs],
        "rejected": [worse for _, worse in pairs],
        "outcome": [outcome for outcome, _ in found],
        "margin": [margin for _, margin in found],
    }
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
    rows: list[tuple[Any, ...]] = []
    given = items.select(*BASE, "response_ids", "rank").iter_rows()
    for place, (*base, names, ranks) in enumerate(given):
        scores: list[float | None] = [*scored.scores[place]] or [None] * len(names)
        tokens = scored.tokens[place] if scored.tokens else [None] * len(scores)
        cut = scored.cut[place] if scored.cut else 0
        length = (cut > 0, cut, scored.dropped.get(place))
        if not benchmark.is_ranking:
            rows.append((*base, *scores[:2], *tokens[:2], *length))
            continue
        outcome = None if scored.scores[place] else "dropped"
        for name, rank, value, size in zip(names, ranks, scores, tokens, strict=True):
            valid = "scored" if value is not None and isfinite(value) else "invalid"
            rows.append((*base, name, rank, value, size, *length, outcome or valid))
    names = SCORED_RANKED if benchmark.is_ranking else SCORED_PAIRED
    # By columns, which takes a tenth of the time that rows take.
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)))
    return frame if benchmark.is_ranking else frame.with_columns(decisions["outcome"], decisions["margin"])


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
