"""Short views of results: the row of a run, and its overall number in a line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural

from pluralbench.metrics.metric import SHOWN_COUNTS
from pluralbench.results.numbers import DASH, number

if TYPE_CHECKING:
    from pluralbench.results.runs import Run

SUMMARY = pl.Schema(
    dict.fromkeys(("model", "benchmark", "profile"), pl.String())
    | dict.fromkeys(("overall", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "clusters"), pl.Int64())
    | {"coin": pl.Float64()}
    | dict.fromkeys(SHOWN_COUNTS, pl.Int64())
    | {"run": pl.String()}
)
"""Columns of `Run.summary` and `pluralbench.load_results`."""


def summary_frame(run: "Run") -> pl.DataFrame:
    """Return the overall number of a run with its interval and counts as a row."""
    number = run.headline
    row = {
        "model": run.name,
        "benchmark": run.config.benchmark.name,
        "profile": run.config.prompt.profile,
        "overall": number.value,
        "low": number.low,
        "high": number.high,
        "n": run.items_counted,
        "clusters": number.clusters,
        "coin": run.estimate("overall", baseline="coin").value,
        **{name: run.count(name) for name in SHOWN_COUNTS},
        "run": str(run.path),
    }
    return pl.DataFrame([row], schema=SUMMARY)


def run_text(run: "Run") -> str:
    """Describe a run in a line: model, benchmark, overall number, items and directory."""
    number = f"unreadable ({run.unreadable} invalid)" if run.unreadable else number_text(run.headline)
    parts = [run.config.benchmark.title, number, *filter(None, [run.mostly_close_margins]), run.size, str(run.path)]
    return f"{run.name} on {', '.join(parts)}"


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
