"""A build's figures as small tables of texts, for its card and for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl


def text_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> pl.DataFrame:
    """A small frame of texts; whole numbers have a comma at each thousand, and None is nothing."""
    texts = [[_text(value) for value in row] for row in rows]
    return pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String), orient="row")


def share_text(found: Mapping[str, Any], decimals: int = 0, *, of: bool = True) -> str:
    """A share (`share`, `low`, `high`, `of`) in percent with its interval: "75% [69, 80] of 248"; "none" without one.

    of: whether to say of how many.
    """
    if found["share"] is None:
        return "none"
    bounds = "" if found["low"] is None else f" [{100 * found['low']:.0f}, {100 * found['high']:.0f}]"
    return f"{found['share']:.{decimals}%}{bounds}" + (f" of {found['of']:,}" if of else "")


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
