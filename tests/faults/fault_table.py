"""The table of what was tried and what failed."""

from collections.abc import Sequence
from typing import Any

COLUMNS = ("traceback", "hang", "death", "terminal", "lost")
TRIED = "faults tried"  # the property of a test's report that holds its row


def print_table(reports: Sequence[Any], file: Any) -> None:
    """Print a row for each test of faults among pytest's reports; nothing where there is none."""
    told = [
        value
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, value in report.user_properties
        if name == TRIED
    ]
    if not told:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("kind", "tried", *COLUMNS, "one again", title="Faults")
    for row in sorted(told, key=lambda row: str(row["kind"])):
        counts = [str(row["counts"].get(name, 0)) for name in COLUMNS]
        table.add_row(row["kind"], str(row["tried"]), *counts, row["again"])
    totals = [str(sum(row["counts"].get(name, 0) for row in told)) for name in COLUMNS]
    table.add_section()
    table.add_row("all", str(sum(row["tried"] for row in told)), *totals, "")
    Console(file=file, width=160, markup=False).print(table)
