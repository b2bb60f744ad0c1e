"""`pluralbench score`."""

from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh, Options, with_options

from pluralbench.commands.options import DetectedBenchmark, Out, Shard
from pluralbench.config import ClusterConfig, DataConfig, LocalModel, PromptConfig, ScoringConfig, ServingConfig

ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="Directory, ORG/NAME on the Hub, or `local` (small embedded model).")
]


@with_options
def score(
    name: ModelName,
    *,
    benchmark: DetectedBenchmark = None,
    data: Annotated[DataConfig, Options("Data")],
    prompt: Annotated[PromptConfig, Options("Prompt")],
    model: Annotated[LocalModel, Options("Model", from_parameters={"name": "name"})],
    scoring: Annotated[ScoringConfig, Options("Running")],
    serving: Annotated[ServingConfig, Options("Server")],
    cluster: Annotated[ClusterConfig, Options("Cluster")],
    shard: Shard = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Score a reward model on a benchmark.

    Writes a run directory with the scores of every item, the metrics and their provenance. Rerun the same command to
    resume.

    Examples:

    pluralbench score Skywork/Skywork-Reward-V2-Llama-3.2-1B --benchmark personalized

    pluralbench score local --data sample

    pluralbench score ./my-model --data dist/personalized-rewardbench --profile raw --out runs/mine

    pluralbench score ORG/NAME --server http://gpu1:8000,http://gpu2:8000 --dtype bfloat16

    pluralbench score ./policy --kind implicit --reference ./base --benchmark pairs --data pairs.jsonl

    pluralbench score ./my-model --benchmark personalized --shard 2/8 --out runs/mine-shard2of8
    """
    log_status(f"Scoring {model.name}...")
    from pluralbench_local.served.config import described  # noqa: PLC0415 - `--help` need not wait for it

    from pluralbench.commands.console_output import print_run  # noqa: PLC0415 - the same
    from pluralbench.evaluation.score import score as run_score  # noqa: PLC0415 - the same

    print_run(
        run_score(
            described(model, serving),
            benchmark=benchmark,
            data=data,
            prompt=prompt,
            scoring=scoring,
            cluster=cluster,
            shard=shard,
            out=out,
            fresh=fresh,
        )
    )
