"""`pluralbench study`."""

from pathlib import Path
from typing import Annotated

import typer

from pluralbench.commands.terminal import console


def study(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="tiny, paper, cheems-sets, cheems-scaling, cheems-models, or a TOML file."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The study's directory; without it under studies/.")] = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe instead, to make another of it.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, and replace what is there.")] = False,
) -> None:
    """Tell from beginning to end whether a benchmark predicts what reward models do to a policy.

    It trains reward models where the recipe says so, scores them on the benchmarks, lets them choose among a policy's
    candidates and optimises the policy against them, judges what comes of it, and correlates. Each step is kept: an
    interrupted study goes on with the same command. README.md in the directory says what was found and how sure it is.

    Examples:

    pluralbench study tiny                          # on two cores in 17 minutes

    pluralbench study tiny --show > my-study.toml

    pluralbench study my-study.toml --out studies/mine
    """
    from pluralbench.downstream.study_recipe import FOLDER  # noqa: PLC0415 - `--help` need not wait for it

    if show:
        from pluralbench_runs import recipe_path  # noqa: PLC0415 - the same

        typer.echo(recipe_path(recipe, FOLDER).read_text(encoding="utf-8").rstrip())
        return
    from pluralbench.commands.console_output import print_tables  # noqa: PLC0415 - the same
    from pluralbench.reports.study import findings, scores_table  # noqa: PLC0415 - the same
    from pluralbench.studying import study as run_study  # noqa: PLC0415 - the same

    found = run_study(recipe, out=out, fresh=fresh)
    print_tables([scores_table(found)])
    for line in findings(found):
        console.print(line)
    console.print(f"{found.path}: README.md, scores.csv, figures, and a directory for each step")
