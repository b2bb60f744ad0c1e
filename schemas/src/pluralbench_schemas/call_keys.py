"""Keys of recorded calls, as rows name them."""

import polars as pl

CALL_KEY = r"\A[0-9a-f]{64}\z"


def are_call_keys(column: str) -> pl.Expr:
    """Whether a column of lists holds keys of calls alone, SHA-256 in 64 hexadecimal digits."""
    return pl.col(column).list.eval(pl.element().str.contains(CALL_KEY).fill_null(value=False)).list.all()
