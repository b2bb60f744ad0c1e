"""How long the work on a run took, over all its parts where it was interrupted, and what its calls cost."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_calls import ConnectionConfig
from pluralbench_runs import write_text

from pluralbench.errors import RunError
from pluralbench.results.record import CostRecord

TIMES = "times.json"
OURS = {"lock", "recipe.toml", "recipe.json", TIMES}
"""What lies in a working directory before any work is done."""


@contextmanager
def stopwatch(work: Path) -> Iterator[Callable[[], float]]:
    """Measure work in a run's working directory; yields a function that gives the seconds so far, of all parts.

    Of a part that was killed what counts is until the last answer or score that it recorded.
    """
    path = work / TIMES
    before, start = _before(path), time.monotonic()

    def seconds() -> float:
        return before + time.monotonic() - start

    _write(path, before, time.time())
    try:
        yield seconds
    finally:
        if path.exists():  # else the run is finished and in its place
            if {one.name for one in work.iterdir()} <= OURS:
                path.unlink()  # nothing was done, so nothing may bind the next run
            else:
                _write(path, seconds(), None)


def _before(path: Path) -> float:
    if not path.exists():
        return 0.0
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        seconds, began = float(known["seconds"]), known["began"]
    except (ValueError, TypeError, KeyError):
        raise RunError(f"{path} is damaged; start over with `fresh`.") from None
    if began is None:
        return seconds
    last = max((one.stat().st_mtime for one in path.parent.iterdir() if one.name not in OURS), default=0.0)
    return seconds + max(0.0, last - float(began))


def _write(path: Path, seconds: float, began: float | None) -> None:
    write_text(path, json.dumps({"seconds": seconds, "began": began}))


def cost_of_calls(
    seconds: float, connection: ConnectionConfig, prompt_tokens: int, completion_tokens: int
) -> CostRecord:
    """What calls cost by the price of their connection, where it has one."""
    price = connection.price
    if not (price.input or price.output):
        return CostRecord(seconds=seconds)
    dollars = connection.limits().price.cost(prompt_tokens, completion_tokens)
    return CostRecord(seconds=seconds, dollars=dollars, price=price)
