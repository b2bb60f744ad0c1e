"""`pluralbench study`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status

from pluralbench.commands.terminal import console


def study(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="tiny, paper, cheems-sets, cheems-scaling, cheems-models, or a TOML file."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Directory of the study. Default: a name under studies/.")] = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe instead of running it.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, and replace existing output.")] = False,
) -> None:
    """Run a complete study of whether a benchmark predicts the effect of reward models on a policy.

    A study trains the reward models of its recipe, scores them on the benchmarks, runs best-of-n and optimization with
    them, judges the results and correlates. Rerun the same command to resume. README.md in the directory reports the
    results with intervals.

    Examples:

    pluralbench study tiny                          # 17 minutes on two cores

    pluralbench study tiny --show > my-study.toml

    pluralbench study my-study.toml --out studies/mine
    """
    from pluralbench.downstream.study_recipe import FOLDER  # noqa: PLC0415 - `--help` need not wait for it

    if show:
        from pluralbench_runs import recipe_path  # noqa: PLC0415 - the same
        from pluralbench_tables import read_text  # noqa: PLC0415 - the same

        typer.echo(read_text(recipe_path(recipe, FOLDER)).rstrip())
        return
    log_status(f"Starting the study {recipe}...")
    from pluralbench.commands.console_output import print_tables  # noqa: PLC0415 - the same
    from pluralbench.reports.study import findings, scores_table  # noqa: PLC0415 - the same
    from pluralbench.studying import study as run_study  # noqa: PLC0415 - the same

    done = run_study(recipe, out=out, fresh=fresh)
    print_tables([scores_table(done)])
    for line in findings(done):
        console.print(line)
    console.print(f"{done.path}: README.md, scores.csv, figures, and a directory for each step")
