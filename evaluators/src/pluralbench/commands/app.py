"""The command `pluralbench` and its verbs."""

from typing import NoReturn

from pluralbench_runs import Program
from pluralbench_runs.command import Verb


def _verb(function: str, show: str, status: str, **made: str) -> Verb:
    """Return a verb of the Python API, with the function of `printing` and those of `made` by parameter."""
    makers = {parameter: f"pluralbench.commands.made:{maker}" for parameter, maker in made.items()}
    return Verb(f"pluralbench.{function}", f"pluralbench.commands.printing:{show}", makers, status)


def _command(place: str, status: str = "", **made: str) -> Verb:
    """Return a verb that is a file in this folder."""
    makers = {parameter: f"pluralbench.commands.made:{maker}" for parameter, maker in made.items()}
    return Verb(f"pluralbench.commands.{place}", made=makers, status=status)


program = Program(
    "pluralbench",
    help="""\
Score reward models on benchmarks in which the better response depends on the user.

Examples:
    pluralbench score ./my-model --data sample
""",
    verbs={
        "Evaluate": {
            "score": _verb("evaluation.score:score", "print_run", "Scoring {model.name}...", model="model"),
            "suite": _verb(
                "evaluation.suite:suite",
                "print_suite",
                "Scoring {model.name} on the suite {suite}...",
                model="model",
                data="locations",
                html="page",
                without="item_list",
            ),
            "judge": _verb("evaluation.judge:judge", "print_run", "Judging with {model}..."),
            "judge-personas": _verb("evaluation.personas:judge_personas", "print_run", "Judging with {model}..."),
            "judge-metrics": _command("judge_metrics:judge_metrics", "Reading verdicts..."),
            "merge": _verb("evaluation.merge:merge", "print_run", "Joining shards..."),
        },
        "Read": {
            "report": _command("report:report", "Reading runs..."),
            "show": _command("show:show", "Reading the run..."),
            "compare": _command("compare:compare", "Reading runs..."),
            "contamination": _verb(
                "evaluation.contamination:contamination",
                "print_contamination",
                "Reading {dataset}...",
                data="locations",
                out="item_file",
            ),
            "agree": _verb("evaluation.agree:agree", "print_agreement", "Reading scores...", recheck="recheck"),
            "list": _command("list_benchmarks:list_benchmarks"),
        },
        "Train": {
            "train": _verb("evaluation.train:train", "print_trained", "Training {base.name}...", held_out="held_out"),
            "personalize": _verb(
                "personalizing.run:personalize",
                "print_personalized",
                "Training on {backbone.name}...",
                held_out="held_out",
            ),
            "train-planner": _verb("planning.training:train_planner", "print_planner", "Training on {base.name}..."),
            "plan": _verb("planning.plans:plan", "print_plans", "Planning with {planner}...", planner="planner"),
            "synthesize": _verb(
                "evaluation.synthesize:synthesize", "print_synthesis", "Writing personas with {model}..."
            ),
        },
        "Policies": {
            "best-of-n": _verb(
                "downstream.best_of_n:best_of_n",
                "print_downstream",
                "Sampling from {policy}...",
                policy="policy",
                rewards="rewards",
            ),
            "optimize": _verb(
                "downstream.optimization:optimize",
                "print_optimized",
                "Optimizing {policy}...",
                policy="local_policy",
                reward="reward",
                name="reward_name",
                train="training_prompts",
                sampling="judged_answers",
            ),
            "optimize-verl": _verb(
                "downstream.verl:optimize_by_verl",
                "print_verl",
                "Optimizing {policy}...",
                policy="local_policy",
                reward="reward",
            ),
            "rate": _command("rate:rate"),
            "correlate": _verb("downstream.correlate:correlate", "print_correlation", "Reading scores..."),
            "study": _command("study:study"),
        },
        "Share": {
            "check": _command("check:check", "Reading runs...", data="locations"),
            "leaderboard": _command("leaderboard:leaderboard", "Reading runs...", data="locations"),
        },
    },
)


def main() -> NoReturn:
    """Run the command."""
    program.run()
