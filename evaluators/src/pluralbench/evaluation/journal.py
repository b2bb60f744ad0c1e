"""The scores of a run on the way: what was scored before an interruption is not scored again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_rewards import OnScored
from pluralbench_runs import write_text

from pluralbench.errors import RunError

JOURNAL = "scores.jsonl"


@contextmanager
def open_journal(work: Path) -> Iterator[tuple[dict[int, list[float]], OnScored]]:
    """What an interrupted run had scored, by the place of the group, and what records a further one."""
    path = work / JOURNAL
    known = _read(path)
    try:
        with path.open("a", encoding="utf-8") as file:

            def record(place: int, scores: list[float]) -> None:
                file.write(json.dumps([place, scores]) + "\n")
                file.flush()

            yield known, record
    finally:
        if not path.stat().st_size:
            path.unlink()  # nothing was scored, so nothing may bind the next run


def _read(path: Path) -> dict[int, list[float]]:
    """A line that the interruption cut short is as if it were not there."""
    known: dict[int, list[float]] = {}
    if path.exists():
        text = path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        try:
            known = dict(json.loads(line) for line in complete.splitlines())
        except (ValueError, TypeError):
            raise RunError(f"{path} is damaged; start over with `fresh`.") from None
        write_text(path, complete)
    return known
