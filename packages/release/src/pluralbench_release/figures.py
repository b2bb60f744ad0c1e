"""Figures of a build as small tables of strings, for its card and the terminal, and the colors of series."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

# Blue, ocher, pink, teal, violet, olive, lilac, plum. All stand out by 3:1 from light and dark paper and bands. Within
# that range of lightness a search put them as far apart as possible for readers with and without color blindness.
COLORS = ("#0072b2", "#bc8000", "#e46078", "#2c9ca0", "#9c24fc", "#68702c", "#947ce8", "#9c5478")


def text_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> pl.DataFrame:
    """Build a small frame of strings; integers get thousands separators, and None becomes an empty string."""
    texts = [[_text(value) for value in row] for row in rows]
    return pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String), orient="row")


def entries_table(names: Sequence[str], entries: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Build a `text_table` of the named values of each entry."""
    return text_table(names, [[entry[name] for name in names] for entry in entries])


def count_by(frame: pl.DataFrame, *columns: str) -> list[dict[str, Any]]:
    """Count the rows with the same values of some columns, as JSON values in the order of these columns."""
    return frame.group_by(*columns).len("count").sort(*columns).to_dicts()


def share_text(share: Mapping[str, Any], decimals: int = 0, *, of: bool = True) -> str:
    """Format a share of `pluralbench_measures.agreement.share_of` in percent: "75% [69, 80] of 248", or "none"."""
    if share["share"] is None:
        return "none"
    bounds = "" if share["low"] is None else f" [{100 * share['low']:.0f}, {100 * share['high']:.0f}]"
    return f"{share['share']:.{decimals}%}{bounds}" + (f" of {share['of']:,}" if of else "")


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
