"""`pluralbench judge-personas`."""

from typing import Annotated

from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh, Options, Seed, with_options

from pluralbench.commands.judge import Model
from pluralbench.commands.options import Out, Shard
from pluralbench.config import ConnectionConfig, PersonaDataConfig, PersonaJudgeConfig


@with_options
def judge_personas(
    model: Model,
    *,
    data: Annotated[PersonaDataConfig, Options("Data")],
    judging: Annotated[PersonaJudgeConfig, Options("Judging")],
    connection: Annotated[ConnectionConfig, Options("Connection")],
    seed: Seed = 0,
    shard: Shard = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Let a language model predict the choices of people from their personas, with its certainty.

    Every call is recorded in the run directory; rerun the same command to resume without repeating calls. --limit draws
    items by the seed. A verdict that cannot be parsed after --attempts tries is invalid and counts as wrong.

    Examples:

    pluralbench judge-personas gpt-5-mini --data dist/persona-judge --price 0.25/2 --max-cost 2

    pluralbench judge-personas gpt-5-mini --data dist/persona-judge --variables none --limit 200
    """
    log_status(f"Judging with {model}...")
    from pluralbench.commands.console_output import print_run  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.personas import judge_personas as run_judge_personas  # noqa: PLC0415 - the same

    print_run(
        run_judge_personas(
            model,
            data=data,
            judging=judging,
            connection=connection,
            seed=seed,
            shard=shard,
            out=out,
            fresh=fresh,
        )
    )
