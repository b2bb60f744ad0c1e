"""From scores and verdicts to decisions: one row for each pair of responses that the benchmark tells apart."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import polars as pl

OUTCOMES = ("win", "loss", "tie", "invalid", "dropped", "equal")
"""What came of a pair. invalid: no number, or no verdict that could be parsed; dropped: too long to be scored; equal:
the benchmark calls the responses equally good, so nothing can be right or wrong."""

BASE = ("config", "id", "cluster", "subset", "digest")
"""What a decision has of its item."""

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


def pairs_of(item: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The places of (better, worse) responses of an item, by their ranks."""
    for better, first in enumerate(item["rank"]):
        for worse, second in enumerate(item["rank"]):
            if first < second:
                yield better, worse


def decide(items: pl.DataFrame, scores: Sequence[Sequence[float]], cut: Sequence[int]) -> pl.DataFrame:
    """Decisions by scores: the better response wins when its score is strictly higher.

    scores: of each item's responses, or none for an item that was dropped. cut: tokens that each item lost.
    """
    rows = []
    for item, values, lost in zip(items.iter_rows(named=True), scores, cut, strict=True):
        base = {name: item[name] for name in BASE} | {"truncated": lost > 0}
        pairs = list(pairs_of(item))
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
