"""`python -m pluralbench.metrics` prints the table of all metrics in Markdown."""

import polars as pl
from pluralbench_release.card import markdown_table

from pluralbench.metrics.table import METRICS

if __name__ == "__main__":
    rows = [
        (f"`{one.name}`", one.unit, ", ".join(f"`{by}`" if by else "run" for by in one.dimensions), one.definition)
        for one in METRICS.values()
    ]
    print(markdown_table(pl.DataFrame(rows, ["metric", "unit", "by", "definition"], orient="row")))  # noqa: T201
