"""The parts of a comparison of two runs, as a table for people."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table as Grid

from pluralbench.evaluation.compare import RunComparison
from pluralbench.reports.layout import broken

WHOLE = {"accuracy": "accuracy", "exact_match": "exact match"}


def parts_table(found: RunComparison) -> Grid:
    """A row for each part: both runs' numbers, the difference with its interval, and p, plain and by Holm."""
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.add_column("part", overflow="fold")
    for name in ("first", "second", "difference", "p", "Holm"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in found.parts.iter_rows(named=True):
        grid.add_row(
            broken(_name(row), 30),
            _percent(row["first"]),
            _percent(row["second"]),
            _difference(row),
            _p(row["p_value"]),
            _p(row["p_holm"]),
        )
    return grid


def _name(row: Mapping[str, Any]) -> str:
    """ "human: 知识, exact match", or "all: accuracy" for a mean over configs."""
    places = [row[name] for name in ("config", "section", "subset") if row[name] is not None] or ["all configs"]
    metric = "" if row["metric"] == "accuracy" else f", {WHOLE.get(row['metric'], row['metric'])}"
    return ": ".join(places) + metric


def _difference(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return "–"
    bounds = "" if row["low"] is None else f" [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
    return f"{100 * row['difference']:+.1f}{bounds}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value >= 0.001 else "<0.001"
