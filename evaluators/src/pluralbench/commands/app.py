"""The command `pluralbench`: its verbs, a file each."""

from typing import NoReturn

import typer
from pluralbench_runs import run

from pluralbench.commands import (
    best_of_n,
    compare,
    correlate,
    judge,
    judge_metrics,
    judge_personas,
    leaderboard,
    list_benchmarks,
    merge,
    optimize,
    personalize,
    plan,
    report,
    score,
    show,
    study,
    submit,
    synthesize,
    train,
    train_planner,
)

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Score reward models on benchmarks in which better depends on who is asking.",
    epilog="Example: pluralbench score ./my-model --data sample",
)
for verb, command in (
    (score, score.score),
    (judge, judge.judge),
    (judge_personas, judge_personas.judge_personas),
    (judge_metrics, judge_metrics.judge_metrics),
    (merge, merge.merge),
    (compare, compare.compare),
    (report, report.report),
    (submit, submit.submit),
    (leaderboard, leaderboard.leaderboard),
    (show, show.show),
    (list_benchmarks, list_benchmarks.list_),
    (train, train.train),
    (personalize, personalize.personalize),
    (train_planner, train_planner.train_planner),
    (plan, plan.plan),
    (best_of_n, best_of_n.best_of_n),
    (optimize, optimize.optimize),
    (correlate, correlate.correlate),
    (study, study.study),
    (synthesize, synthesize.synthesize),
):
    app.command(command.__name__.strip("_").replace("_", "-"), epilog=verb.EXAMPLES)(command)


def main() -> NoReturn:
    """Entry point of the command."""
    run(app, "pluralbench")
