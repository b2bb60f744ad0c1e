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


def decide(items: pl.DataFrame, scores: Sequence[Sequence[float]], cut: Sequence[int] = ()) -> pl.DataFrame:
    """Decisions by scores: the better response wins when its score is strictly higher.

    scores: of each item's responses, or none for an item that was dropped. cut: tokens that each item
    lost; without it none.
    """
    rows = []
    for item, values, lost in zip(items.iter_rows(named=True), scores, cut or [0] * len(scores), strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": lost > 0}
        pairs = pairs_of(item["rank"])
        if not pairs:
            rows.append(base | {"outcome": "equal"})
        for better, worse in pairs:
            names = {"chosen": item["response_ids"][better], "rejected": item["response_ids"][worse]}
            rows.append(base | names | _outcome(values, better, worse))
    return pl.DataFrame(rows, schema=DECISIONS)


def _outcome(values: Sequence[float], better: int, worse: int) -> dict[str, Any]:
    if not values:
        return {"outcome": "dropped"}
    margin = values[better] - values[worse]
    if not isfinite(margin):
        return {"outcome": "invalid"}
    return {"outcome": "win" if margin > 0 else "loss" if margin < 0 else "tie", "margin": margin}


def score_items(benchmark: Benchmark, items: pl.DataFrame, scored: Scored, decisions: pl.DataFrame) -> pl.DataFrame:
    """`items.parquet` of scores: a row a pair with its decision, or for rankings a row a response.

    items: of the benchmark. scored: their scores. decisions: what `decide` makes of these.
    """
    rows = []
    for place, item in enumerate(items.iter_rows(named=True)):
        row = {name: item[name] for name in BASE}
        scores: list[float | None] = [*scored.scores[place]] or [None] * len(item["responses"])
        tokens = scored.tokens[place] if scored.tokens else [None] * len(scores)
        outcome = None if scored.scores[place] else "dropped"
        cut = scored.cut[place] if scored.cut else 0
        length = {"truncated": cut > 0, "tokens_cut": cut, "reason": scored.dropped.get(place)}
        if benchmark.is_ranking:
            for name, rank, value, size in zip(item["response_ids"], item["rank"], scores, tokens, strict=True):
                valid = "scored" if value is not None and isfinite(value) else "invalid"
                own = {"response": name, "rank": rank, "score": value, "tokens": size}
                rows.append(row | own | length | {"outcome": outcome or valid})
        else:
            sides = {"score_chosen": scores[0], "score_rejected": scores[1]}
            rows.append(row | sides | {"tokens_chosen": tokens[0], "tokens_rejected": tokens[1]} | length)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame if benchmark.is_ranking else frame.with_columns(decisions["outcome"], decisions["margin"])


def check_items(items: pl.DataFrame, where: str = "The items") -> pl.DataFrame:
    """The same frame of `items.parquet`. Raises `RunError` for a column that is missing or of another type.

    A row is a pair with its `outcome` and `margin`, or, for rankings, a response with its `rank` and `score`.
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
    if items.is_empty():
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
