"""The columns of a run's frames: one of a name has the same type in every frame, which is text if it is not here."""

from typing import Any

import polars as pl

CALLS = pl.List(pl.String)
"""Keys of a judge's recorded calls: those of `ledger.parquet`, the tries for one reply in their order."""

_WHOLE = (
    *("row", "rank", "turn", "sample", "k", "seed", "pair", "n", "clusters", "attempts", "sentences"),
    *("tokens", "tokens_chosen", "tokens_rejected", "tokens_cut", "posts", "words"),
)
_NUMBERS = (
    *("value", "low", "high", "margin", "certainty", "reward", "distance"),
    *("score", "score_chosen", "score_rejected"),
)
_CALLS = ("calls", "calls_swapped", "calls_chosen", "calls_rejected", "calls_chosen_first", "calls_rejected_first")
_TYPES: dict[str, Any] = {
    **dict.fromkeys(_WHOLE, pl.Int64),
    **dict.fromkeys(_NUMBERS, pl.Float64),
    **dict.fromkeys(("truncated", "correct"), pl.Boolean),
    **dict.fromkeys(_CALLS, CALLS),
    "scores": pl.List(pl.Float64),
    "aspects": pl.List(pl.String),
}


def schema_of(*names: str) -> pl.Schema:
    """The schema of these columns."""
    return pl.Schema({name: _TYPES.get(name, pl.String) for name in names})
