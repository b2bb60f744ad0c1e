"""`pluralbench judge`."""

from typing import Annotated

import typer
from pluralbench_runs import ClusterConfig, RecipeError, log_status
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.options import DetectedBenchmark, Out, Shard
from pluralbench.config import ConnectionConfig, DataConfig, JudgeConfig, PromptConfig

NOT_ON_A_CLUSTER = (
    "A judge does not run on a Ray cluster; serve the language model there (`vllm serve MODEL`) and pass its address "
    "with --base-url instead of --cluster."
)
ADDRESS = ClusterConfig.model_fields["address"]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name of a model at --base-url, or `local` (small embedded model).")
]


@with_options
def judge(
    model: Model,
    *,
    benchmark: DetectedBenchmark = None,
    data: Annotated[DataConfig, Options("Data")],
    prompt: Annotated[PromptConfig, Options("Prompt")],
    judging: Annotated[JudgeConfig, Options("Judging")],
    connection: Annotated[ConnectionConfig, Options("Connection")],
    cluster: Annotated[
        str | None, typer.Option(help=ADDRESS.description, metavar="ray|[ray://]HOST:PORT", hidden=True)
    ] = None,
    seed: Seed = 0,
    shard: Shard = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Let a language model judge a benchmark.

    Every call is recorded in the run directory; rerun the same command to resume without repeating calls. A reply that
    cannot be parsed is retried at a higher temperature. After --attempts tries the verdict is invalid and counts as
    wrong.

    Examples:

    pluralbench judge gpt-5-mini --benchmark personalized --limit 50 --price 0.25/2 --max-cost 1

    pluralbench judge my-model --base-url http://localhost:8000/v1 --data dist/personalized-rewardbench --oracle titles
    """
    if cluster is not None:
        raise RecipeError(NOT_ON_A_CLUSTER)
    log_status(f"Judging with {model}...")
    from pluralbench.commands.console_output import print_run  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.judge import judge as run_judge  # noqa: PLC0415 - the same

    print_run(
        run_judge(
            model,
            benchmark=benchmark,
            data=data,
            prompt=prompt,
            judging=judging,
            connection=connection,
            seed=seed,
            shard=shard,
            out=out,
            fresh=fresh,
        )
    )
