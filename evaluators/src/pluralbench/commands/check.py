"""`pluralbench check`."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pluralbench_runs import log_status, step
from pluralbench_runs.canonical import MAX_SEED
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import AsJson, Options, with_options

from pluralbench.commands.options import RESCORING, CurrentModel, TrustRemoteCode
from pluralbench.commands.terminal import console
from pluralbench.config import PERSONAS, PLANS, ConnectionConfig, ServingConfig
from pluralbench.errors import RunError

if TYPE_CHECKING:
    from pluralbench.results.runs import Run

SERVING: tuple[str, ...] = ("verify_items", "batch_size", "concurrency", "timeout", "max_retries", "api_key_env")
CONNECTION: tuple[str, ...] = (
    "pending",
    "results",
    "batch",
    "timeout",
    "max_retries",
    "max_answer_bytes",
    "concurrency",
)
CONNECTION += ("requests_per_minute", "tokens_per_minute")
DataPlaces = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="[BENCHMARK=]DIR|FILE|ORG/NAME[@REVISION]",
        help="Current location of the runs' data, if it has moved; BENCHMARK= limits it to one benchmark. Repeatable.",
    ),
]


@with_options
def check(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run directories, or directories that contain them.")
    ],
    *,
    data: DataPlaces = None,
    plans: Annotated[Path | None, typer.Option(help=PLANS)] = None,
    personas: Annotated[Path | None, typer.Option(help=PERSONAS)] = None,
    rescore: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Score N random items of each run again.", rich_help_panel=RESCORING),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the random items. Default: different items each time.",
            min=0,
            max=MAX_SEED,
            rich_help_panel=RESCORING,
        ),
    ] = None,
    model: CurrentModel = None,
    trust_remote_code: TrustRemoteCode = False,
    serving: Annotated[ServingConfig, Options("Servers of the model", left_out=SERVING)],
    connection: Annotated[ConnectionConfig, Options("Endpoint of a judge", left_out=CONNECTION)],
    as_json: AsJson = False,
) -> None:
    """Check runs as a leaderboard does: recompute their files from the data, and report anything unusual.

    The check reads the data again and recomputes items, outcomes, metrics, intervals, calls and records from the scores
    and the recorded replies; of best-of-n also candidates and selections. A run whose data cannot be read is not
    checked, nor is one of optimize or personalize, of which only the numbers are recomputed. Only --rescore verifies
    that the scores or replies come from the model: swapped scores, labels used as scores, and other replies under a
    call's key pass every other check. The exit status is 1 if a run is rejected or was not checked.

    Examples:

    pluralbench check runs/a

    pluralbench check runs/a runs/b --data personalized=dist/personalized-rewardbench --json > checked.json

    pluralbench check runs/a --rescore 20     # score 20 random items again

    pluralbench check runs/j --rescore 20 --base-url http://localhost:8000/v1
    """
    log_status("Reading runs...")
    from pluralbench.leaderboard.checks import (  # noqa: PLC0415 - the same
        check_submission,
        check_summary,
        location_override,
        parse_location_overrides,
    )
    from pluralbench.leaderboard.downstream import check_downstream, check_personalized  # noqa: PLC0415 - the same
    from pluralbench.leaderboard.reproduction import RunInputs  # noqa: PLC0415 - `--help` need not wait for the metrics
    from pluralbench.leaderboard.rescoring import Rescoring  # noqa: PLC0415 - the same
    from pluralbench.results.downstream import DownstreamRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.finding import find_runs  # noqa: PLC0415 - the same
    from pluralbench.results.personalize import PersonalizeRunConfig  # noqa: PLC0415 - the same

    found = find_runs(runs)
    loaded: list[Run[Any, Any]] = [*found.runs, *found.downstream, *found.personalized]
    if not loaded:
        raise RunError(f"{', '.join(map(str, runs))} contains only plans, which have nothing to check.")
    places = parse_location_overrides(data or ())
    rescoring = None
    if rescore is not None:
        item_seed = random.SystemRandom().randrange(2**31) if seed is None else seed
        endpoint = connection if connection.base_url else None
        rescoring = Rescoring(rescore, item_seed, model, serving, endpoint, trust_remote_code=trust_remote_code)
    checked = {}
    for run in loaded:
        files = RunInputs(location_override(places, run), plans, personas)
        with step(f"Checking {run.path}"):
            if isinstance(run.config, PersonalizeRunConfig):
                checked[run.path] = check_personalized(run, rescoring)
            elif isinstance(run.config, DownstreamRunConfig):
                checked[run.path] = check_downstream(run, files, rescoring)
            else:
                checked[run.path] = check_submission(run, found.runs, files=files, rescoring=rescoring)
    if as_json:
        typer.echo(terminal_json([check_summary(run, checked[run.path]) for run in loaded]))
    else:
        from pluralbench.leaderboard.findings import finding_lines  # noqa: PLC0415 - the same

        for run in loaded:
            for line in finding_lines(run, checked[run.path]):
                console.print(line)
    if not all(result.accepted for result in checked.values()):
        raise typer.Exit(1)
