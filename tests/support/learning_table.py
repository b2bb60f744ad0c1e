"""The table of what models learned in the tests marked `learning`, beside the best possible."""

from collections.abc import Sequence
from typing import Any

LEARNED = "learned"  # the property of a test's report that holds a row
COLUMNS = ("check", "found", "wanted", "best possible")


def print_learned(reports: Sequence[Any], file: Any) -> None:
    """Print a row for each `LEARNED` property among pytest's reports; nothing where there is none."""
    rows = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == LEARNED
    ]
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*COLUMNS, title="Learning")
    for row in sorted(rows):
        table.add_row(*row)
    Console(file=file, width=120, markup=False).print(table)
