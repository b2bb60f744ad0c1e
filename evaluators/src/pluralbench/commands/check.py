"""`pluralbench check`."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pluralbench_runs import log_status, step
from pluralbench_runs.canonical import MAX_SEED
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import AsJson, Options, with_options

from pluralbench.commands.options import (
    RESCORING,
    CurrentModel,
    DataPlaces,
    TrustRemoteCode,
    parse_location_overrides,
)
from pluralbench.commands.terminal import console
from pluralbench.config import PERSONAS, PLANS, ConnectionConfig, ServingConfig
from pluralbench.errors import RunError

if TYPE_CHECKING:
    from pluralbench.results.runs import Run

UNSEEN = "Only scoring again (--rescore N) shows whether scores and replies are the model's."
SERVING: tuple[str, ...] = ("verify_items", "batch_size", "concurrency", "timeout", "max_retries", "api_key_env")
CONNECTION: tuple[str, ...] = ("pending", "results", "batch", "timeout", "max_retries", "max_answer_bytes")
CONNECTION += ("concurrency", "requests_per_minute", "tokens_per_minute")


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
    """Check runs as a leaderboard does: recompute their numbers from their items and their data.

    The check reads the data again, recomputes items, metrics, intervals and records from the scores and the recorded
    replies, and compares configuration and digests. Of best-of-n, optimize and personalize it recomputes only the
    numbers. Only --rescore shows whether scores and replies are the model's: swapped scores, labels used as scores and
    other recorded replies pass every other check. The exit status is 1 if a run is rejected or was not checked against
    its data.

    Examples:

    pluralbench check runs/a

    pluralbench check runs/a runs/b --data personalized=dist/personalized-rewardbench --json > checked.json

    pluralbench check runs/a --rescore 20     # score 20 random items again

    pluralbench check runs/j --rescore 20 --base-url http://localhost:8000/v1
    """
    log_status("Reading runs...")
    from pluralbench.evaluation.reloading import RunInputs  # noqa: PLC0415 - the same
    from pluralbench.leaderboard.checks import check_submission, check_summary, location_override  # noqa: PLC0415 - `--help` need not wait for the metrics
    from pluralbench.leaderboard.findings import finding_lines  # noqa: PLC0415 - the same
    from pluralbench.leaderboard.rescoring import Rescoring  # noqa: PLC0415 - the same
    from pluralbench.results.finding import find_runs  # noqa: PLC0415 - the same

    found = find_runs(runs)
    loaded: list[Run[Any, Any]] = [*found.runs, *found.downstream, *found.personalized]
    if not loaded:
        raise RunError(f"{', '.join(map(str, runs))} contains only plans, which have nothing to check.")
    places = parse_location_overrides(data)
    rescoring = None
    if rescore is not None:
        item_seed = random.SystemRandom().randrange(2**31) if seed is None else seed
        endpoint = connection if connection.base_url else None
        rescoring = Rescoring(rescore, item_seed, model, serving, endpoint, trust_remote_code=trust_remote_code)
    checked = []
    for run in loaded:
        with step(f"Checking {run.path}"):
            files = RunInputs(location_override(places, run), plans, personas)
            checked.append((run, check_submission(run, files=files, rescoring=rescoring)))
    if as_json:
        typer.echo(terminal_json([check_summary(*one) for one in checked]))
    else:
        for one in checked:
            for line in finding_lines(*one):
                console.print(line)
        if any(result.state == "checked" for _, result in checked):
            console.print(UNSEEN)
    if not all(result.accepted for _, result in checked):
        raise typer.Exit(1)
