"""Tables that pytest prints at its end: what `tests/faults` tried, and what models learned beside the best possible."""

from collections.abc import Sequence
from typing import Any

TRIED, LEARNED = "faults tried", "learned"  # properties of a test's report that hold a row
FAULTS = ("traceback", "hang", "death", "terminal", "lost")


def print_tables(reports: Sequence[Any], file: Any) -> None:
    """Print both tables; nothing without rows."""
    ends = [report for report in reports if getattr(report, "when", "") == "teardown"]
    told = [value for report in ends for name, value in report.user_properties if name == TRIED]
    learned = [value for report in ends for name, value in report.user_properties if name == LEARNED]
    rows = [
        [row["kind"], row["tried"], *(row["counts"].get(name, 0) for name in FAULTS), row["again"]]
        for row in sorted(told, key=lambda row: str(row["kind"]))
    ]
    rows += [["all", *(sum(row[place] for row in rows) for place in range(1, 2 + len(FAULTS))), ""]] if rows else []
    _print("Faults", ("kind", "tried", *FAULTS, "one again"), rows, file)
    _print("Learning", ("check", "found", "wanted", "best possible"), sorted(learned), file)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], file: Any) -> None:
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*map(str, row))
    Console(file=file, width=160, markup=False).print(table)
