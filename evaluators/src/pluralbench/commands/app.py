"""The command `pluralbench`: its verbs, a file each."""

from typing import NoReturn

import typer
from pluralbench_runs import run

from pluralbench.commands import compare, judge, judge_metrics, judge_personas, report, score

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Score reward models on benchmarks in which better depends on who is asking.",
)
for name, verb in (
    ("score", score),
    ("judge", judge),
    ("judge-personas", judge_personas),
    ("judge-metrics", judge_metrics),
    ("compare", compare),
    ("report", report),
):
    app.command(name, epilog=verb.EXAMPLES)(verb.command)


def main() -> NoReturn:
    """Entry point of the command."""
    run(app)
