"""Short views of results, for notebooks: columns of a row, numbers in a line, and small HTML tables."""

from collections.abc import Iterator, Sequence
from html import escape

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural

from pluralbench.metrics.metric import SHOWN_COUNTS
from pluralbench.results.numbers import DASH, number

SUMMARY = pl.Schema(
    dict.fromkeys(("model", "benchmark", "profile"), pl.String())
    | dict.fromkeys(("overall", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "clusters"), pl.Int64())
    | {"coin": pl.Float64()}
    | dict.fromkeys(SHOWN_COUNTS, pl.Int64())
    | {"run": pl.String()}
)
"""Columns of `Run.summary` and `pluralbench.results`."""

RIGHT = 'style="text-align: right"'


def items_text(counted: Sequence[int], total: int) -> str:
    """Describe the number of items, such as "24 items", or "1 of 805 items" if not all are counted.

    Args:
        counted: Number of counted items behind each of some numbers.
        total: Number of items.
    """
    least, most = min(counted), max(counted)
    part = "" if least == total else f"{least:,} of " if least == most else f"{least:,} to {most:,} of "
    return f"{part}{plural(total, 'item')}"


def number_text(estimate: Estimate) -> str:
    """Format a share in percent with its interval, as "41.7 % [22.9, 62.5]"."""
    value, low, high, _ = number(estimate)
    if value == DASH:
        return "no overall number"
    return f"{value} % [{low}, {high}]" if low else f"{value} %"


def table_html(title: str, numbers: Sequence[tuple[str, Estimate]], note: str) -> str:
    """Make a small HTML table, a row for each named share, with a note below."""
    head = "".join(f'<th scope="col" {RIGHT}>{name}</th>' for name in ("accuracy", "95 % interval", "n"))
    cells = ((name, "".join(f"<td {RIGHT}>{cell}</td>" for cell in _cells(estimate))) for name, estimate in numbers)
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{row}</tr>' for name, row in cells)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(note)}</p>"
    )


def _cells(estimate: Estimate) -> Iterator[str]:
    value, low, high, _ = number(estimate)
    yield value
    yield f"{low} to {high}" if low else ""
    yield "" if estimate.n is None else f"{estimate.n:,}"
