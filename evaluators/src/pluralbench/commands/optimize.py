"""`pluralbench optimize`."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.verl import VerlConfig
from pluralbench_runs import RecipeError, log_status
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.best_of_n import JudgeConnection, ReuseFrom
from pluralbench.commands.options import DRAW, Benchmark, Out
from pluralbench.commands.terminal import console
from pluralbench.config import (
    ClusterConfig,
    ConnectionConfig,
    DataConfig,
    DownstreamPromptConfig,
    OutcomeConfig,
    RuntimeConfig,
    SamplingConfig,
    ScoringConfig,
)


@with_options
def optimize(
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="MODEL",
            help="Language model with a chat template: directory or ORG/NAME on the Hub.",
            rich_help_panel="Policy",
        ),
    ],
    reward: Annotated[
        str,
        typer.Option(
            "--reward",
            metavar="[NAME=]MODEL",
            help="Reward model: directory or ORG/NAME on the Hub.",
            rich_help_panel="Reward model",
        ),
    ],
    *,
    options: Annotated[OptimizeConfig, Options("Optimization", from_parameters={"seed": "seed"})],
    engine: Annotated[
        Literal["local", "verl"],
        typer.Option(
            help="local: this process, on the CPU or one GPU. verl: several GPUs; judge its result with best-of-n.",
            rich_help_panel="Optimization",
        ),
    ] = "local",
    verl: Annotated[VerlConfig, Options("verl", prefix="verl-")],
    cluster: Annotated[ClusterConfig, Options("verl", left_out=("workers", "gpus_per_worker"))],
    train: Annotated[
        str | None,
        typer.Option(
            "--train-data",
            metavar="DIR|FILE|ORG/NAME[@REVISION]",
            help="Prompts to optimize on. Default: those of --data.",
            rich_help_panel="Data",
        ),
    ] = None,
    train_split: Annotated[
        str | None,
        typer.Option(help="Split of --train-data (or --data) to optimize on.", rich_help_panel="Data"),
    ] = None,
    benchmark: Benchmark = "personalized",
    data: Annotated[DataConfig, Options("Data", left_out=("english", "legacy", *DRAW))],
    prompt: Annotated[DownstreamPromptConfig, Options("Data")],
    sampling: Annotated[SamplingConfig, Options("Judge", prefix="sample-", left_out=("n", "k"))],
    samples: Annotated[
        int, typer.Option("--sample-n", help="Judged answers per prompt.", min=1, max=100_000, rich_help_panel="Judge")
    ] = 1,
    outcome: Annotated[OutcomeConfig, Options("Judge", prefix="judge-", left_out=("judged",))],
    running: Annotated[RuntimeConfig, Options("Models in this process")],
    scoring: Annotated[ScoringConfig, Options("Reward model")],
    judge_connection: JudgeConnection,
    seed: Seed = 0,
    reuse: ReuseFrom = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Optimize a policy against a reward model with PPO, RLOO or GRPO, and judge its answers before and after.

    Requires the extra `optimize`; in a clone: uv sync --inexact --package pluralbench --extra optimize. Rerun the same
    command to resume. The result's directory `policy` is an ordinary language model with the training curves
    (curves.png) and log (log.jsonl).

    Examples:

    pluralbench optimize --policy ./policy --reward ./rm-a --data dist/personalized-rewardbench --judge gpt-5-mini

    pluralbench optimize --policy ./policy --reward ./rm-a --algorithm rloo --max-steps 20 --batch-size 8
    """
    log_status(f"Optimizing {policy}...")
    from pluralbench_local import LocalModel  # noqa: PLC0415 - `--help` need not wait for it

    from pluralbench.commands.console_output import print_downstream  # noqa: PLC0415 - the same
    from pluralbench.downstream.optimization import optimize as run_optimize  # noqa: PLC0415 - the same
    from pluralbench.downstream.verl import optimize_by_verl as run_verl  # noqa: PLC0415 - the same
    from pluralbench.evaluation.models import reward_model_configs  # noqa: PLC0415 - the same

    [(name, model)] = reward_model_configs([reward], running).items()
    start = LocalModel(name=policy, **running.model_dump(exclude={"dtype"}))
    has_own_prompts = train is not None or train_split is not None
    prompts = {"location": train or data.location, "split": train_split} if has_own_prompts else {}
    tasks = data.model_copy(update=prompts)
    if engine == "verl":
        unused = {
            "--judge, --judge-*, --measure": (outcome, judge_connection) != (OutcomeConfig(), ConnectionConfig()),
            "--sample-*": (sampling, samples) != (SamplingConfig(), 1),
            "--reuse": reuse is not None,
            "--fresh": fresh,
        }
        if any(unused.values()):
            given = ", ".join(option for option, is_given in unused.items() if is_given)
            raise RecipeError(f"--engine verl judges nothing and resumes by itself; leave out {given}.")
        folder = Path(out or Path("runs") / f"{Path(benchmark).stem}-{Path(policy).name}-verl-{name}")
        run_verl(
            start,
            model,
            folder,
            benchmark=benchmark,
            data=tasks,
            prompt=prompt,
            options=options,
            verl=verl,
            cluster=cluster,
            scoring=scoring,
        )
        console.print(
            f"{folder}: verl's checkpoints. Merge one (python -m verl.model_merger merge), then judge it by best-of-n."
        )
        return
    if cluster.address is not None:
        raise RecipeError("--cluster requires --engine verl; --engine local optimizes in this process.")
    done = run_optimize(
        start,
        model,
        name=name,
        benchmark=benchmark,
        data=data,
        train=tasks if has_own_prompts else None,
        prompt=prompt,
        options=options,
        sampling=sampling.model_copy(update={"n": samples}),
        scoring=scoring,
        outcome=outcome,
        judge_connection=judge_connection,
        seed=seed,
        reuse=reuse,
        out=out,
        fresh=fresh,
    )
    print_downstream(done)
