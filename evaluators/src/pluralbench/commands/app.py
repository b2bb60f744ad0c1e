"""The command `pluralbench`: its verbs, a file each."""

from typing import NoReturn

import typer
from pluralbench_runs import run

from pluralbench.commands import compare, correlate, judge, judge_metrics, judge_personas, report, score

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Score reward models on benchmarks in which better depends on who is asking.",
)
for verb, command in (
    (score, score.score),
    (judge, judge.judge),
    (judge_personas, judge_personas.judge_personas),
    (judge_metrics, judge_metrics.judge_metrics),
    (compare, compare.compare),
    (correlate, correlate.correlate),
    (report, report.report),
):
    app.command(command.__name__.replace("_", "-"), epilog=verb.EXAMPLES)(command)


def main() -> NoReturn:
    """Entry point of the command."""
    run(app)
