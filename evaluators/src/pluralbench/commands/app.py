"""The command `pluralbench` and its verbs."""

from typing import NoReturn

from pluralbench_runs import Program
from pluralbench_runs.command import Verb


def _verb(function: str, show: str, status: str, **made: str) -> Verb:
    """Return a verb of `pluralbench.verbs`, with the function of `printing` and those of `made` by parameter."""
    makers = {parameter: f"pluralbench.commands.made:{maker}" for parameter, maker in made.items()}
    return Verb(f"pluralbench.verbs.{function}", f"pluralbench.commands.printing:{show}", makers, status)


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
            "score": _verb("evaluate:score", "print_run", "Scoring {model.name}...", model="model"),
            "suite": _verb(
                "evaluate:suite",
                "print_suite",
                "Scoring {model.name} on the suite {suite}...",
                model="model",
                data="locations",
                html="page",
                without="item_list",
            ),
            "judge": _verb("evaluate:judge", "print_run", "Judging with {model}..."),
            "judge-personas": _verb("evaluate:judge_personas", "print_run", "Judging with {model}..."),
            "judge-metrics": _command("judge_metrics:judge_metrics", "Reading verdicts..."),
            "merge": _verb("evaluate:merge", "print_run", "Joining shards..."),
        },
        "Read": {
            "report": _command("report:report", "Reading runs..."),
            "show": _command("show:show", "Reading the run..."),
            "compare": _command("compare:compare", "Reading runs..."),
            "contamination": _verb(
                "read:contamination", "print_contamination", "Reading {dataset}...", data="locations", out="item_file"
            ),
            "agree": _verb("read:agree", "print_agreement", "Reading scores...", recheck="recheck"),
            "list": _command("list_benchmarks:list_benchmarks"),
        },
        "Train": {
            "train": _verb("train:train", "print_trained", "Training {base.name}...", held_out="held_out"),
            "personalize": _verb(
                "train:personalize", "print_personalized", "Training on {backbone.name}...", held_out="held_out"
            ),
            "train-planner": _verb("train:train_planner", "print_planner", "Training on {base.name}..."),
            "plan": _verb("train:plan", "print_plans", "Planning with {planner}...", planner="planner"),
            "synthesize": _verb("evaluate:synthesize", "print_synthesis", "Writing personas with {model}..."),
        },
        "Policies": {
            "best-of-n": _verb(
                "policies:best_of_n",
                "print_downstream",
                "Sampling from {policy}...",
                policy="policy",
                rewards="rewards",
            ),
            "optimize": _verb(
                "policies:optimize",
                "print_optimized",
                "Optimizing {policy}...",
                policy="local_policy",
                reward="reward",
                name="reward_name",
                train="training_prompts",
                sampling="judged_answers",
            ),
            "optimize-verl": _verb(
                "policies:optimize_by_verl",
                "print_verl",
                "Optimizing {policy}...",
                policy="local_policy",
                reward="reward",
            ),
            "rate": _command("rate:rate"),
            "correlate": _verb("read:correlate", "print_correlation", "Reading scores..."),
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
