"""`pluralbench list`."""

import json
from textwrap import fill
from typing import Annotated

import typer
from pluralbench_runs.options import AsJson

from pluralbench.commands.terminal import console


def list_(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks or TOML files. Default: all built-in benchmarks.", metavar="NAME"),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List benchmarks with their items, overall number, data source and license.

    Examples:

    pluralbench list

    pluralbench list personalized my-benchmark.toml --json
    """
    from pluralbench.data.benchmarks import benchmark_entries  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.reports.benchmarks import benchmark_lines, benchmark_rows  # noqa: PLC0415 - the same

    rows = benchmark_rows(benchmark_entries(names or ()))
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for number, row in enumerate(rows):
        if number:
            console.print()
        first, *others = benchmark_lines(row)
        console.print(first, style="bold")
        for line in others:
            console.print(fill(line, console.width, initial_indent="  ", subsequent_indent="    "))
