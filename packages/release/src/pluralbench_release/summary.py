"""Print finished releases on the terminal, for the commands of builders."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_runs import plural, shell_command
from rich.console import Console
from rich.table import Column
from rich.table import Table as Grid

from pluralbench_release.card import load_call
from pluralbench_release.manifest import Built


def print_summary(
    console: Console,
    built: Built,
    figures: Mapping[str, pl.DataFrame],
    *,
    notes: Sequence[str] = (),
    next_commands: Sequence[str] = (),
) -> None:
    """Print a summary of a release: tables, digests, figures by title, notes and suggested commands."""
    target, manifest = built.directory, built.manifest
    console.print(
        f"\n{target}: {manifest.name} {manifest.version}, {plural(manifest.ledger.calls, 'recorded call')}, "
        f"{built.new_calls:,} of them new"
    )
    grid = _grid("config", "split", "rows", "content digest")
    for table in manifest.tables:
        grid.add_row(table.config, table.split, f"{table.rows:,}", table.digest[:16] + "…")
    console.print(grid)
    for title, frame in figures.items():
        print_table(console, title, frame)
    for note in notes:
        console.print(note)
    first = manifest.tables[0]
    console.print("\nNext:")
    console.print(f"  read {target / 'README.md'}, the card")
    console.print(f"  {shell_command('pluralbench-release', 'verify', target)}")
    load = f"import datasets; print(datasets.{load_call(target.as_posix(), first)})"
    console.print(f"  {shell_command('python', '-c', load)}")
    for line in next_commands:
        console.print(f"  {line}")


def print_table(console: Console, title: str, frame: pl.DataFrame) -> None:
    """Print a small frame of strings as a table."""
    grid = _grid(*frame.columns, title=title, title_justify="left")
    for row in frame.iter_rows():
        grid.add_row(*row)
    console.print(grid)


def _grid(*names: str, **options: Any) -> Grid:
    """Make a table whose narrow columns break long words and cut nothing."""
    return Grid(*(Column(name, overflow="fold") for name in names), **options)
