"""`correlate`: how well a benchmark predicts what reward models do to a policy."""

import json
from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs.options import AsJson

from pluralbench.commands.options import Plots
from pluralbench.commands.terminal import console, errors


def correlate(
    benchmark: Annotated[Path, typer.Argument(help="A table with `model` and scores, a run, or a folder of runs.")],
    downstream: Annotated[Path, typer.Argument(help="The same of what the models did to a policy.")],
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns of the benchmark's table whose mean is the score.")
    ] = None,
    downstream_columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The same of the downstream's table.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Another benchmark to compare with; repeatable."),
    ] = None,
    baseline_columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns of the baselines' tables.")
    ] = None,
    plots: Plots = None,
    seed: Annotated[int, typer.Option(help="Seed of every draw.", min=0)] = 0,
    *,
    as_json: AsJson = False,
) -> None:
    """Tell how well a benchmark's ranking of reward models predicts what these do to a policy, and how sure that is.

    A table is a CSV, JSON Lines or Parquet file with the column `model` and one or more columns of scores, of which
    higher is better; the score of a run is its overall number.

    Examples:

    pluralbench correlate benchmark.csv best_of_16.csv

    pluralbench correlate benchmark.csv ppo.csv --columns art,lifestyle,society      # the mean of the three

    pluralbench correlate runs/personalized best_of_16.csv --baseline arena=arena.csv --plots figures

    pluralbench correlate benchmark.csv best_of_16.csv --json > correlation.json
    """
    from pluralbench.commands.console_output import print_tables  # noqa: PLC0415 - `--help` need not wait for the tests
    from pluralbench.downstream.correlate import correlate as correlate_sides  # noqa: PLC0415 - the same
    from pluralbench.reports.correlation import closing, heading, tables  # noqa: PLC0415 - the same

    found = correlate_sides(
        benchmark,
        downstream,
        columns=_names(columns),
        downstream_columns=_names(downstream_columns),
        baseline_columns=_names(baseline_columns),
        baselines=_baselines(baseline or []),
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        for line in heading(found):
            console.print(line)
        print_tables(tables(found))
        for line in closing(found):
            console.print(line)
    if plots is not None:
        from pluralbench.reports.figures.correlation import draw_correlation  # noqa: PLC0415 - figures are drawn by few

        for path in draw_correlation(found, plots):
            (errors if as_json else console).print(f"Wrote {path}")


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _baselines(given: list[str]) -> dict[str, Path]:
    from pluralbench.errors import DataError  # noqa: PLC0415 - `--help` need not wait for it

    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = (part.strip() for part in one.partition("="))
        if not (name and equals and path):
            raise DataError(f"--baseline {one}: give NAME=FILE, such as arena=arena.csv.")
        if name in found:
            raise DataError(f"--baseline {name} is given twice; each needs a name of its own.")
        found[name] = Path(path)
    return found
