"""`pluralbench correlate`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import AsJson, Seed

from pluralbench.commands.options import Plots
from pluralbench.commands.terminal import console, errors


def correlate(
    benchmark: Annotated[
        Path, typer.Argument(metavar="BENCHMARK", help="Table with `model` and scores, a run, or a directory of runs.")
    ],
    downstream: Annotated[
        Path, typer.Argument(metavar="DOWNSTREAM", help="The same for the downstream results of a policy.")
    ],
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns of the benchmark's table whose mean is the score.")
    ] = None,
    downstream_columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns of the downstream table whose mean is the score.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Another benchmark to compare; repeatable."),
    ] = None,
    baseline_columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns of the baselines' tables.")
    ] = None,
    plots: Plots = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a self-contained HTML page with tables, figures and items."),
    ] = None,
    seed: Seed = 0,
    *,
    as_json: AsJson = False,
) -> None:
    """Correlate a benchmark's scores of reward models with the downstream results of a policy, with intervals.

    A table is a CSV, JSON Lines or Parquet file with a column `model` and one or more columns of scores (higher is
    better). The score of a run is its overall number.

    Examples:

    pluralbench correlate benchmark.csv best_of_16.csv

    pluralbench correlate benchmark.csv ppo.csv --columns art,lifestyle,society      # mean of the three

    pluralbench correlate runs/personalized best_of_16.csv --baseline arena=arena.csv --plots figures

    pluralbench correlate benchmark.csv best_of_16.csv --html correlation.html

    pluralbench correlate benchmark.csv best_of_16.csv --json > correlation.json
    """
    log_status("Reading scores...")
    from pluralbench.commands.console_output import print_lines, print_tables  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.downstream.correlate import correlate as correlate_scores  # noqa: PLC0415 - the same
    from pluralbench.reports.correlation import correlation_notes, heading, tables  # noqa: PLC0415 - the same

    correlation = correlate_scores(
        benchmark,
        downstream,
        columns=_names(columns),
        downstream_columns=_names(downstream_columns),
        baseline_columns=_names(baseline_columns),
        baselines=_baselines(baseline or []),
        seed=seed,
    )
    if as_json:
        typer.echo(terminal_json(correlation.as_dict()))
    else:
        for line in heading(correlation):
            console.print(line)
        print_tables(tables(correlation))
        print_lines(correlation_notes(correlation))
    if plots is not None:
        from pluralbench.reports.figures import downstream as figures  # noqa: PLC0415 - only needed for figures
        from pluralbench.reports.figures.files import write  # noqa: PLC0415 - the same

        for path in write(figures.correlation(correlation), plots):
            (errors if as_json else console).print(f"Wrote {path}")
    if html is not None:
        from pluralbench.reports.html.further import write_correlation  # noqa: PLC0415 - only needed for the page

        write_correlation(correlation, html)
        (errors if as_json else console).print(f"Wrote {html}")


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _baselines(values: list[str]) -> dict[str, Path]:
    from pluralbench.errors import DataError  # noqa: PLC0415 - `--help` need not wait for it

    baselines: dict[str, Path] = {}
    for value in values:
        name, equals, path = (part.strip() for part in value.partition("="))
        if not (name and equals and path):
            raise DataError(f"--baseline {value} does not have the form NAME=FILE, such as arena=arena.csv.")
        if name in baselines:
            raise DataError(f"--baseline {name} is there twice; give each baseline its own name.")
        baselines[name] = Path(path)
    return baselines
