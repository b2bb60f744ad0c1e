"""`pluralbench best-of-n`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.options import DRAW, Benchmark, Out
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

CONNECTION = ("timeout", "max_retries", "requests_per_minute", "tokens_per_minute")
Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="MODEL",
        help="Directory or ORG/NAME on the Hub to run here, a model of --policy-base-url, or `local` (embedded).",
        rich_help_panel="Policy",
    ),
]
PolicyConnection = Annotated[ConnectionConfig, Options("Policy", prefix="policy-", left_out=CONNECTION)]
JudgeConnection = Annotated[ConnectionConfig, Options("Judge", prefix="judge-", left_out=CONNECTION)]
# --pending and --import apply to policy and judge: each uses its own files.
FILES = {"pending": "policy_pending", "results": "policy_results"}
ReuseFrom = Annotated[
    Path | None,
    typer.Option(
        "--reuse",
        help="Ledger (or directory with one) whose recorded calls are not repeated.",
        rich_help_panel="Result",
    ),
]
Plots = Annotated[Path | None, typer.Option(help="Directory for figures (PNG and SVG).", rich_help_panel="Result")]


@with_options
def best_of_n(
    policy: Policy,
    reward: Annotated[
        list[str],
        typer.Option(
            "--reward",
            metavar="[NAME=]MODEL",
            help="Reward model: directory or ORG/NAME on the Hub; repeatable.",
            rich_help_panel="Reward models",
        ),
    ],
    *,
    benchmark: Benchmark = "personalized",
    data: Annotated[DataConfig, Options("Data", left_out=("english", "legacy", *DRAW))],
    prompt: Annotated[DownstreamPromptConfig, Options("Data")],
    sampling: Annotated[SamplingConfig, Options("Policy")],
    outcome: Annotated[OutcomeConfig, Options("Judge", prefix="judge-")],
    running: Annotated[RuntimeConfig, Options("Models in this process")],
    scoring: Annotated[ScoringConfig, Options("Reward models")],
    policy_connection: PolicyConnection,
    judge_connection: Annotated[
        ConnectionConfig, Options("Judge", from_parameters=FILES, prefix="judge-", left_out=CONNECTION)
    ],
    cluster: Annotated[ClusterConfig, Options("Cluster")],
    seed: Seed = 0,
    reuse: ReuseFrom = None,
    out: Out = None,
    fresh: Fresh = False,
    plots: Plots = None,
) -> None:
    """Sample candidates from a policy, select the best by each reward model, and judge the selected ones.

    Candidates are sampled once, and each is judged at most once, even if several reward models select it. Rerun the
    same command to resume. The value of best-of-k is the expectation over all sets of k candidates, and also that of
    the first k candidates, as in Personalized RewardBench (section 5.1).

    Examples:

    pluralbench best-of-n --policy Qwen/Qwen2.5-0.5B-Instruct --reward ./rm-a --reward ./rm-b --judge gpt-5-mini

    pluralbench best-of-n --policy qwen2.5 --policy-base-url http://localhost:8000/v1 --reward b=./rm-b/last --judge
    local

    pluralbench best-of-n --policy ./policy --reward ./rm-a --data dist/personalized-rewardbench --judge rubric-overlap

    pluralbench best-of-n --policy ./policy --reward ./rm-a --benchmark prompts --data mt-bench.jsonl --column
    prompt=turns --profile none --n 32 --measure rating --judge gpt-5-mini     # two turns
    """
    log_status(f"Sampling from {policy}...")
    from pluralbench.commands.console_output import print_downstream  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.downstream.best_of_n import best_of_n as run_best_of_n  # noqa: PLC0415 - the same
    from pluralbench.evaluation.models import policy_config, reward_model_configs  # noqa: PLC0415 - the same

    done = run_best_of_n(
        policy_config(policy, running, policy_connection),
        reward_model_configs(reward, running),
        benchmark=benchmark,
        data=data,
        prompt=prompt,
        sampling=sampling,
        scoring=scoring,
        outcome=outcome,
        policy_connection=policy_connection,
        judge_connection=judge_connection,
        cluster=cluster,
        seed=seed,
        reuse=reuse,
        out=out,
        fresh=fresh,
    )
    print_downstream(done, plots)
