"""The work of a run over all its processes: checkpointed scores, duration, and cost of calls."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pluralbench_calls import ConnectionConfig, Ledger
from pluralbench_rewards import OnScored
from pluralbench_runs import Output, log_status, plural, write_text
from pydantic import ConfigDict, NonNegativeInt, TypeAdapter, ValidationError

from pluralbench.errors import RunError
from pluralbench.results.record import CostRecord, UsageRecord
from pluralbench.results.run_files import ANY_FILE, LEDGER_FILE, RUN_FILE, SCHEMA_VERSION, read_file

JOURNAL, TIMES = "scores.jsonl", "times.json"
OWN_FILES = {"lock", "recipe.toml", "recipe.json", TIMES}
"""Files of a working directory before any work is done."""
BATCH = TypeAdapter(list[tuple[NonNegativeInt, list[float]]], config=ConfigDict(defer_build=True))
"""A line of the journal: groups by position with their scores."""


@contextmanager
def open_journal(work: Path, sizes: Sequence[int]) -> Iterator[tuple[dict[int, list[float]], OnScored]]:
    """Open the journal of a working directory, which has a line for each batch of scores.

    Yields the scores that it contains, by the position of the group, and a function that records those of a batch.

    Raises:
        RunError: The journal has a line that is not of scores of these groups.
    """
    path = work / JOURNAL
    journaled = _read_journal(path, sizes)
    try:
        with path.open("a", encoding="utf-8") as file:

            def record(scores: Mapping[int, list[float]]) -> None:
                if scores:
                    file.write(json.dumps([*scores.items()]) + "\n")
                    file.flush()

            yield journaled, record
    finally:
        if not path.stat().st_size:
            path.unlink()  # nothing was scored, so the next run may use other settings


def _read_journal(path: Path, sizes: Sequence[int]) -> dict[int, list[float]]:
    """Read a journal and drop a last line that the interruption cut short."""
    scores: dict[int, list[float]] = {}
    if path.exists():
        with path.open("r+b") as file:
            complete = 0
            for line in file:
                if line.endswith(b"\n"):
                    scores.update(_scores_of(line, sizes, path))
                    complete += len(line)
            file.truncate(complete)
    return scores


def _scores_of(line: bytes, sizes: Sequence[int], path: Path) -> list[tuple[int, list[float]]]:
    try:
        scores = BATCH.validate_json(line, strict=True)
        if all(len(values) == sizes[place] for place, values in scores):
            return scores
    except (ValidationError, IndexError):
        pass
    raise RunError(f"{path} is damaged; start over with `fresh=True`.")


@contextmanager
def stopwatch(work: Path) -> Iterator[Callable[[], float]]:
    """Measure the time of the work in a run's working directory.

    Yields a function that returns the seconds so far, over all processes that worked on the run. A killed process
    counts until the last answer or score that it recorded.
    """
    path = work / TIMES
    before, start = _earlier_seconds(path), time.monotonic()

    def seconds() -> float:
        return before + time.monotonic() - start

    _write(path, before, time.time())
    try:
        yield seconds
    finally:
        if path.exists():  # else the run is finished and moved
            if {file.name for file in work.iterdir()} <= OWN_FILES:
                path.unlink()  # no work was done, so the next run may use other settings
            else:
                _write(path, seconds(), None)


def _earlier_seconds(path: Path) -> float:
    if not path.exists():
        return 0.0
    try:
        times = json.loads(path.read_text(encoding="utf-8"))
        seconds, began = float(times["seconds"]), times["began"]
    except (ValueError, TypeError, KeyError):
        raise RunError(f"{path} is damaged; start over with `fresh=True`.") from None
    if began is None:
        return seconds
    last = max((file.stat().st_mtime for file in path.parent.iterdir() if file.name not in OWN_FILES), default=0.0)
    return seconds + max(0.0, last - float(began))


def _write(path: Path, seconds: float, began: float | None) -> None:
    write_text(path, json.dumps({"seconds": seconds, "began": began}))


def reopen_failed(output: Output) -> bool:
    """Whether a finished run has calls that the server did not answer; its other calls are put into the new work."""
    result = read_file(output.target / RUN_FILE, ANY_FILE, SCHEMA_VERSION).result
    if not isinstance(result, UsageRecord) or not result.failed_calls:
        return False
    log_status(f"The server did not answer {plural(result.failed_calls, 'call')} of {output.target}; sending again.")
    with Ledger(output.work / "ledger.sqlite") as ledger:
        ledger.add_from(output.target / LEDGER_FILE)
    cost = getattr(result, "cost", None)
    if cost is not None and not (output.work / TIMES).exists():
        _write(output.work / TIMES, cost.seconds, None)
    return True


def cost_of_calls(
    seconds: float, connection: ConnectionConfig, prompt_tokens: int, completion_tokens: int
) -> CostRecord:
    """Return the duration of a run, and the cost of its calls if the connection has a price."""
    price = connection.price
    if not (price.input or price.output):
        return CostRecord(seconds=seconds)
    dollars = connection.limits().price.cost(prompt_tokens, completion_tokens)
    return CostRecord(seconds=seconds, dollars=dollars, price=price)
