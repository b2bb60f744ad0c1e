"""Column types of a run's frames: a column has the same type in every frame; columns not listed here are strings."""

from typing import Any

import polars as pl

CALLS = pl.List(pl.String)
"""Type of columns with a judge's calls: keys in `ledger.parquet`, one per attempt, in order."""

_INTEGERS = (
    *("row", "rank", "turn", "sample", "k", "seed", "pair", "n", "clusters", "attempts", "sentences", "position"),
    *("bounds", "tokens", "tokens_chosen", "tokens_rejected", "tokens_cut", "posts", "words", "other"),
)
_FLOATS = (
    *("value", "low", "high", "margin", "certainty", "reward", "distance", "probability"),
    "probability_swapped",
    *("score", "threshold", "score_chosen", "score_rejected", "probability_chosen_first", "probability_rejected_first"),
)
_CALLS = ("calls", "calls_swapped", "calls_chosen", "calls_rejected", "calls_chosen_first", "calls_rejected_first")
_TYPES: dict[str, Any] = {
    **dict.fromkeys(_INTEGERS, pl.Int64),
    **dict.fromkeys(_FLOATS, pl.Float64),
    **dict.fromkeys(("truncated", "correct"), pl.Boolean),
    **dict.fromkeys(_CALLS, CALLS),
    "scores": pl.List(pl.Float64),
    "aspects": pl.List(pl.String),
    "compared": pl.List(pl.String),
}


def schema_of(*names: str) -> pl.Schema:
    """Return the schema of these columns."""
    return pl.Schema({name: _TYPES.get(name, pl.String) for name in names})


COUNTED = ("win", "loss", "tie", "invalid")
OUTCOMES = (*COUNTED, "dropped", "equal")
"""Outcomes of a pair. invalid: a score is not a finite number, or no verdict could be parsed. dropped: the item is too
long. equal: the benchmark calls the responses equally good, so no outcome is right or wrong."""

BASE = ("config", "id", "cluster", "subset", "digest")
"""Columns that a decision takes from its item."""

DECISIONS = schema_of(*BASE[:-1], "chosen", "rejected", "outcome", "margin", "truncated", "digest")
