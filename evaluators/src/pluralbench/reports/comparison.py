"""Table of the parts of a comparison of two runs."""

from collections.abc import Mapping
from typing import Any

from pluralbench_measures.bootstrap import Estimate

from pluralbench.evaluation.compare import RunComparison
from pluralbench.reports.numbers import p_value, points
from pluralbench.reports.tables import Column, Row, Table

METRICS = {"accuracy": "accuracy", "exact_match": "exact match"}
COLUMNS = (
    Column("first"),
    Column("second"),
    Column("difference", points),
    Column("p", p_value),
    Column("Holm", p_value),
)


def parts_table(comparison: RunComparison) -> Table:
    """Make a row for each part: both numbers, the difference with its interval, p, and p corrected by Holm."""
    rows = []
    for row in comparison.parts.iter_rows(named=True):
        difference = Estimate(row["difference"], row["low"], row["high"])
        rows.append(Row(_name(row), (row["first"], row["second"], difference, row["p_value"], row["p_holm"])))
    return Table("", "part", COLUMNS, rows)


def _name(row: Mapping[str, Any]) -> str:
    """ "human: 知识, exact match", or "all: accuracy" for a mean over configs."""
    places = [row[name] for name in ("config", "section", "subset") if row[name] is not None] or ["all configs"]
    metric = "" if row["metric"] == "accuracy" else f", {METRICS.get(row['metric'], row['metric'])}"
    return ": ".join(places) + metric
