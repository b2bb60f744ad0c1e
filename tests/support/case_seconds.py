"""The CPU seconds of each case, with those of processes that it waits for, so that a slow one is found in CI.

A case that is not marked belongs to the README's command. One that takes longer than `LIMIT` is tried again at once,
since the first of a process also imports what it needs. Machines differ in speed by a factor of two, and so does one of
them with what else it does, so seconds are those of a machine on which a loop of Python takes `LOOP`. The loop stays in
the processor's cache, and tests do not, so the limits leave room.
"""

import json
import resource
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

LIMIT = 2.0
"""CPU seconds of an unmarked case."""
BUDGET = 520.0
"""CPU seconds of all unmarked cases, without collecting them."""
LOOP = 0.0035
"""CPU seconds of a loop over 100,000 numbers."""
LOOP_EVERY = 10  # seconds
SLOW = ("heavy", "learning", "engines", "faults")
CALL = pytest.StashKey[float]()


@lru_cache(maxsize=1)
def _slowness(_period: int) -> float:
    """How many CPU seconds of this machine are one of those that limits are stated in; measured once a period."""
    total, before = 0, time.thread_time()
    for number in range(100_000):
        total += number
    return (time.thread_time() - before) / LOOP


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def record(item: pytest.Item, nextitem: pytest.Item | None, seconds: float, file: Path) -> None:
    """Append a case to the file, with the seconds of its calls: two if the first took too long."""
    marked = any(item.get_closest_marker(name) for name in SLOW)
    slowness = _slowness(int(time.monotonic() / LOOP_EVERY))
    calls = [item.stash.get(CALL, 0.0) / slowness]
    if not marked and calls[0] > LIMIT:
        runtestprotocol(item, log=False, nextitem=nextitem)
        calls.append(item.stash.get(CALL, 0.0) / slowness)
    row: dict[str, Any] = {"case": item.nodeid, "marked": marked, "seconds": seconds / slowness, "calls": calls}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")
