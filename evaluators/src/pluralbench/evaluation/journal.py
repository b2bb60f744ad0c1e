"""Checkpointed scores of a run, so that an interrupted run does not score twice."""

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
    """Open the journal of a working directory.

    Yields the scores that it contains, by the position of the group, and a function that records the scores of another
    group.
    """
    path = work / JOURNAL
    journaled = _read(path)
    try:
        with path.open("a", encoding="utf-8") as file:

            def record(place: int, scores: list[float]) -> None:
                file.write(json.dumps([place, scores]) + "\n")
                file.flush()

            yield journaled, record
    finally:
        if not path.stat().st_size:
            path.unlink()  # nothing was scored, so the next run may use other settings


def _read(path: Path) -> dict[int, list[float]]:
    """Read a journal and drop a last line that the interruption cut short."""
    scores: dict[int, list[float]] = {}
    if path.exists():
        text = path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        try:
            scores = dict(json.loads(line) for line in complete.splitlines())
        except (ValueError, TypeError):
            raise RunError(f"{path} is damaged; start over with `fresh=True`.") from None
        write_text(path, complete)
    return scores
