"""`pluralbench study`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Flag

from pluralbench.commands.printing import console, print_tables


def study(
    recipe: Annotated[str, Flag(metavar="STUDY")],
    *,
    out: Path | None = None,
    show: bool = False,
    dry_run: bool = False,
    fresh: bool = False,
) -> None:
    """Run a complete study of whether a benchmark predicts the effect of reward models on a policy.

    A study trains the reward models of its recipe, scores them on the benchmarks, runs best-of-n and optimization with
    them, judges the results and correlates. Before the first step it checks what all steps need. Rerun the same command
    to resume. README.md in the directory reports the results with intervals.

    Args:
        recipe: tiny, paper, cheems-sets, cheems-scaling, cheems-models, or a TOML file.
        out: Directory of the study. Default: a name under studies/.
        show: Print the recipe instead of running it.
        dry_run: Check what all steps need, and print the steps with their calls, instead of running them.
        fresh: Start over, and replace existing output.

    Examples:
        pluralbench study tiny                          # 17 minutes on two cores
        pluralbench study tiny --show > my-study.toml
        pluralbench study my-study.toml --dry-run
        pluralbench study my-study.toml --out studies/mine
    """
    from pluralbench.downstream.study_recipe import FOLDER

    if show:
        from pluralbench_runs import recipe_path
        from pluralbench_tables import read_text

        typer.echo(read_text(recipe_path(recipe, FOLDER)).rstrip())
        return
    if dry_run:
        from pluralbench.downstream.study import study_ahead

        for line in study_ahead(recipe, out=out, fresh=fresh):
            typer.echo(line)
        return
    log_status(f"Starting the study {recipe}...")
    from pluralbench.downstream.study import study as run_study
    from pluralbench.reports.kinds import scores_table, study_findings, write_study_page

    done = run_study(recipe, out=out, fresh=fresh)
    write_study_page(done)
    print_tables([scores_table(done)])
    for line in study_findings(done):
        console.print(line)
    console.print(f"{done.path}: README.md, scores.csv, figures, and a directory for each step")
