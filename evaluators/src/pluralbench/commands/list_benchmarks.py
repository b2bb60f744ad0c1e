"""`pluralbench list`."""

from collections.abc import Sequence
from textwrap import fill
from typing import Annotated

import typer
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import Flag

from pluralbench.commands.printing import AsJson, console


def list_benchmarks(names: Annotated[Sequence[str], Flag(metavar="NAME")] = (), *, as_json: AsJson = False) -> None:
    """List benchmarks with their items, license, overall number and data, and suites with their columns.

    Args:
        names: Benchmarks, their TOML files, or built-in suites. Default: all.
        as_json: Print JSON.

    Examples:
        pluralbench list
        pluralbench list personalized my-benchmark.toml --json
        pluralbench list release
    """
    from pluralbench.data.benchmark_entries import benchmark_entries
    from pluralbench.data.suites import known_suites
    from pluralbench.reports.benchmarks import (
        benchmark_lines,
        benchmark_rows,
        suite_lines,
        suite_rows,
    )

    suites = {name: suite for name, suite in known_suites().items() if not names or name in names}
    others = [name for name in names if name not in suites]
    rows = benchmark_rows(benchmark_entries(others)) if others or not names else []
    rows += suite_rows(suites)
    if as_json:
        typer.echo(terminal_json(rows))
        return
    for number, row in enumerate(rows):
        if number:
            console.print()
        first, *details = suite_lines(row) if "columns" in row else benchmark_lines(row)
        console.print(first, style="bold")
        for line in details:
            text = fill(line, console.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
            console.print(text)
