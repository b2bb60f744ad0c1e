"""`pluralbench plan`."""

from typing import Annotated

import typer
from pluralbench_runs import log_status, shell_command
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.options import DRAW, Benchmark, Out
from pluralbench.commands.terminal import console
from pluralbench.config import (
    AspectMatchingConfig,
    ConnectionConfig,
    DataConfig,
    PlanConfig,
    PromptConfig,
    RuntimeConfig,
)

ProfilePrompt = Annotated[
    PromptConfig, Options("Data", left_out=tuple(name for name in PromptConfig.model_fields if name != "profile_size"))
]


@with_options
def plan(
    planner: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Directory or ORG/NAME on the Hub to run here, a model of --base-url, or `local` (embedded).",
        ),
    ],
    *,
    benchmark: Benchmark = "personalized",
    data: Annotated[DataConfig, Options("Data", left_out=("legacy", "english", "on_empty", *DRAW))],
    prompt: ProfilePrompt,
    sampling: Annotated[PlanConfig, Options("Planner")],
    matching: Annotated[AspectMatchingConfig, Options("True aspects")],
    running: Annotated[RuntimeConfig, Options("Model in this process")],
    connection: Annotated[ConnectionConfig, Options("Endpoint")],
    seed: Seed = 0,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Let a planner infer what each user expects of an answer, and measure how many true aspects it finds.

    Writes a directory with plans.jsonl for `score` and `judge` (--profile plan --plans). A plan that is not a list is
    kept as text. Rerun the same command to resume.

    Examples:

    pluralbench plan ./planner --data dist/personalized-rewardbench

    pluralbench plan gpt-5-mini --base-url https://api.openai.com/v1 --price 0.25/2 --max-cost 2 --out plans

    pluralbench score ./my-model --data dist/personalized-rewardbench --profile plan --plans plans
    """
    log_status(f"Planning with {planner}...")
    from pluralbench.evaluation.models import policy_config  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.planning.plans import plan as run_plan  # noqa: PLC0415 - the same
    from pluralbench.reports.plans import plan_lines  # noqa: PLC0415 - the same

    done = run_plan(
        policy_config(planner, running, connection),
        benchmark=benchmark,
        data=data,
        profile_size=prompt.profile_size,
        sampling=sampling,
        matching=matching,
        connection=connection,
        seed=seed,
        out=out,
        fresh=fresh,
    )
    console.print()
    for line in plan_lines(done):
        console.print(line)
    words = ["score", "MODEL", "--benchmark", benchmark, "--profile", "plan", "--plans", done.path, "--data", "..."]
    console.print(f"Next:\n  {shell_command('pluralbench', *words)}")
