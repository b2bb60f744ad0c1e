"""The command `pluralbench` and its verbs."""

from typing import NoReturn

from pluralbench_runs import Program
from pluralbench_runs.program import Verb


def _verb(function: str, status: str = "", show: str = "", **made: str) -> Verb:
    """Return a verb, with the function of `printing` that shows its result, and those of `made` by parameter."""
    makers = {parameter: f"pluralbench.commands.made:{maker}" for parameter, maker in made.items()}
    return Verb(f"pluralbench.{function}", show and f"pluralbench.commands.printing:{show}", makers, status)


program = Program(
    "pluralbench",
    help="""\
Score reward models where the better response depends on the user.

Examples:
    pluralbench score ./my-model --data sample
""",
    common=(
        *("--data", "--benchmark", "--config", "--limit", "--profile", "--kind", "--base-url", "--server"),
        *("--device", "--dtype", "--out", "--fresh"),
    ),
    verbs={
        "Evaluate": {
            "score": _verb("evaluation.score:score", "Scoring {model.name}...", "print_run", model="model"),
            "suite": _verb(
                "evaluation.suite:suite",
                "Scoring {model.name} on the suite {suite}...",
                "print_suite",
                model="model",
                data="locations",
                html="page",
                without="item_list",
            ),
            "judge": _verb("evaluation.judge:judge", "Judging with {model}...", "print_run", model="judges"),
            "judge-personas": _verb(
                "evaluation.personas:judge_personas", "Judging with {model}...", "print_run", model="judge_model"
            ),
            "judge-metrics": _verb("commands.judge_metrics:judge_metrics", "Reading verdicts..."),
            "merge": _verb("evaluation.merge:merge", "Joining shards...", "print_run"),
            "import-inspect": _verb("evaluation.inspect_logs:import_inspect", "Reading the log...", "print_run"),
        },
        "Read": {
            "report": _verb("commands.report:report", "Reading runs..."),
            "show": _verb("commands.show:show", "Reading the run..."),
            "compare": _verb("commands.compare:compare", "Reading runs..."),
            "contamination": _verb(
                "evaluation.contamination:contamination",
                "Reading {dataset}...",
                "print_contamination",
                data="locations",
                out="item_file",
            ),
            "agree": _verb("evaluation.agree:agree", "Reading scores...", "print_agreement"),
            "list": _verb("commands.list_benchmarks:list_benchmarks"),
        },
        "Train": {
            "train": _verb("evaluation.train:train", "Training {base.name}...", "print_trained", held_out="held_out"),
            "export": _verb("evaluation.export:export", "Reading the data...", "print_exported"),
            "personalize": _verb(
                "personalizing.run:personalize",
                "Training on {backbone.name}...",
                "print_personalized",
                held_out="held_out",
            ),
            "train-planner": _verb("planning.training:train_planner", "Training on {base.name}...", "print_planner"),
            "plan": _verb("planning.plans:plan", "Planning with {planner}...", "print_plans", planner="planner"),
            "synthesize": _verb(
                "evaluation.synthesize:synthesize",
                "Writing personas with {model}...",
                "print_synthesis",
                model="judge_model",
            ),
        },
        "Policies": {
            "best-of-n": _verb(
                "downstream.best_of_n:best_of_n",
                "Sampling from {policy}...",
                "print_downstream",
                policy="policy",
                rewards="rewards",
            ),
            "optimize": _verb(
                "downstream.optimization:optimize",
                "Optimizing {policy}...",
                "print_optimized",
                policy="local_policy",
                reward="reward",
                train="training_prompts",
                sampling="judged_answers",
            ),
            "serve": _verb("downstream.serve:serve", "Loading {model.name}...", model="local_reward"),
            "rate": _verb("commands.rate:rate"),
            "correlate": _verb("downstream.correlate:correlate", "Reading scores...", "print_correlation"),
            "study": _verb("commands.study:study"),
        },
        "Share": {
            "check": _verb("commands.check:check", "Reading runs...", data="locations"),
            "leaderboard": _verb("commands.leaderboard:leaderboard", "Reading runs...", data="locations"),
        },
    },
)


def main() -> NoReturn:
    """Run the command."""
    program.run()
