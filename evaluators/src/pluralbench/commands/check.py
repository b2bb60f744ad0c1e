"""`pluralbench check`."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pluralbench_runs import step
from pluralbench_runs.canonical import MAX_SEED
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import Flag, Options
from pydantic import Field

from pluralbench.commands.printing import AsJson, console
from pluralbench.config import ConnectionConfig, ServingConfig
from pluralbench.errors import RunError

if TYPE_CHECKING:
    from pluralbench.results.runs import Run

RESCORING = "Rescoring"
UNSEEN = "Only scoring again (--rescore N) shows whether scores and replies are the model's."
LIMITS = ("concurrency", "timeout", "max_retries")
SERVING = ("verify_items", "batch_size", "api_key_env", *LIMITS)
CONNECTION = ("pending", "results", "batch", "max_answer_bytes", "requests_per_minute", "tokens_per_minute", *LIMITS)


def check(
    runs: Annotated[Sequence[Path], Flag(metavar="RUN...")],
    *,
    data: Mapping[str, str],
    plans: Path | None = None,
    personas: Path | None = None,
    rescore: Annotated[int | None, Field(ge=1), Flag(metavar="N", panel=RESCORING)] = None,
    seed: Annotated[int | None, Field(ge=0, le=MAX_SEED), Flag(panel=RESCORING)] = None,
    model: Annotated[str | None, Flag(panel=RESCORING)] = None,
    trust_remote_code: Annotated[bool, Flag(panel=RESCORING)] = False,
    serving: Annotated[ServingConfig, Options("Servers of the model", SERVING)],
    connection: Annotated[ConnectionConfig, Options("Endpoint of a judge", CONNECTION)],
    as_json: AsJson = False,
) -> None:
    """Check runs as a leaderboard does: recompute their numbers from their items and their data.

    The check reads the data again, recomputes items, metrics, intervals and records from the scores and the recorded
    replies, and compares configuration and digests. Of best-of-n, optimize and personalize it recomputes only the
    numbers. Only --rescore shows whether scores and replies are the model's: swapped scores, labels used as scores and
    other recorded replies pass every other check. The exit status is 1 if a run is rejected or was not checked against
    its data.

    Args:
        runs: Run directories, or directories that contain them.
        data: Current locations of the runs' data, by benchmark.
        plans: For --profile plan: output of `plan`, or JSON Lines with id and aspects.
        personas: Output of `synthesize`, or JSON Lines with persona and the id of an item or a user. Default: the
            data's personas.
        rescore: Score N random items of each run again.
        seed: Seed of the random items. Default: different items each time.
        model: Current directory or name of the model, if it has moved.
        trust_remote_code: Run Python code that comes with a model, with your permissions.
        serving: Servers of the model.
        connection: Endpoint of a judge.
        as_json: Print JSON.

    Examples:
        pluralbench check runs/a
        pluralbench check runs/a runs/b --data personalized=dist/personalized-rewardbench --json > checked.json
        pluralbench check runs/a --rescore 20     # score 20 random items again
        pluralbench check runs/j --rescore 20 --base-url http://localhost:8000/v1
    """
    from pluralbench.evaluation.reloading import RunInputs
    from pluralbench.leaderboard.checks import check_submission, check_summary, location_override
    from pluralbench.leaderboard.rescoring import Rescoring
    from pluralbench.results.checks import finding_lines
    from pluralbench.results.finding import find_runs

    found = find_runs(runs)
    loaded: list[Run[Any, Any]] = [
        *found.runs,
        *(run for group in found.others.values() for run in group if run.kind.numbers),
    ]
    if not loaded:
        raise RunError(f"{', '.join(map(str, runs))} contains only plans, which have nothing to check.")
    rescoring = None
    if rescore is not None:
        item_seed = random.SystemRandom().randrange(2**31) if seed is None else seed
        endpoint = connection if connection.base_url else None
        rescoring = Rescoring(rescore, item_seed, model, serving, endpoint, trust_remote_code=trust_remote_code)
    checked = []
    for run in loaded:
        with step(f"Checking {run.path}"):
            files = RunInputs(location_override(data, run), plans, personas)
            checked.append((run, check_submission(run, files=files, rescoring=rescoring)))
    if as_json:
        typer.echo(terminal_json([check_summary(*one) for one in checked]))
    else:
        for one in checked:
            console.print(*finding_lines(*one), sep="\n")
        if any(result.state == "checked" for _, result in checked):
            console.print(UNSEEN)
    if not all(result.accepted for _, result in checked):
        raise typer.Exit(1)
