"""`pluralbench list`."""

from textwrap import fill
from typing import Annotated

import typer
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import AsJson

from pluralbench.commands.terminal import console


def list_(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks, their TOML files, or built-in suites. Default: all.", metavar="NAME"),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List benchmarks with their items, license, overall number and data, and suites with their columns.

    Examples:

    pluralbench list

    pluralbench list personalized my-benchmark.toml --json

    pluralbench list release
    """
    from pluralbench.data.benchmarks import benchmark_entries  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.data.suites import known_suites  # noqa: PLC0415 - the same
    from pluralbench.reports.benchmarks import (  # noqa: PLC0415 - the same
        benchmark_lines,
        benchmark_rows,
        suite_lines,
        suite_rows,
    )

    suites = {name: suite for name, suite in known_suites().items() if not names or name in names}
    others = [name for name in names or () if name not in suites]
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
