"""The CPU seconds of each case, with those of processes that it waits for, so that a slow one is found in CI.

A case that is not marked belongs to the README's command. One that takes longer than `LIMIT` is tried again at once,
since the first of a process also imports what it needs.
"""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

LIMIT = 2.0
"""CPU seconds of an unmarked case."""
BUDGET = 400.0
"""CPU seconds of all unmarked cases, without collecting them."""
SLOW = ("heavy", "learning", "engines", "faults")
CALL = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def record(item: pytest.Item, nextitem: pytest.Item | None, seconds: float, file: Path) -> None:
    """Append a case to the file, with the seconds of its calls: two if the first took too long."""
    marked = any(item.get_closest_marker(name) for name in SLOW)
    calls = [item.stash.get(CALL, 0.0)]
    if not marked and calls[0] > LIMIT:
        runtestprotocol(item, log=False, nextitem=nextitem)
        calls.append(item.stash.get(CALL, 0.0))
    row: dict[str, Any] = {"case": item.nodeid, "marked": marked, "seconds": seconds, "calls": calls}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")
