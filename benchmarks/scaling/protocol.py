"""Messages between the controller and its processes. Standard library only, to keep the controller small."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Description by step. Steps run in this order, and later ones read the files of earlier ones.
STEPS = {
    "validate": "a table checked against its schema",
    "digest": "content digest of a table",
    "release": "tables checked and written with card and checksums",
    "verify": "all checksums and digests of a release",
    "read": "pairs read as items, as `score` does",
    "score": "pairs scored by a Python function, and the run written",
    "go on": "the same, with every score already in the journal",
    "score, 24 languages": "the same number of pairs, in 24 languages and 23 subsets",
    "metrics": "metrics and intervals computed from the items of a run",
    "metrics, 24 languages": "the same in 24 languages",
    "report": "a run read and its table printed",
    "submit": "a run checked for the leaderboard",
    "ledger: record": "answers written to a ledger, 64 at a time",
    "ledger: resume": "recorded keys looked up in a ledger",
    "ledger: find": "all answers of a ledger read by key",
    "ledger: export": "a ledger written as Parquet",
    "ledger: import": "that Parquet read into an empty ledger",
    "ledger: import SQLite": "an SQLite ledger read into an empty one",
}


@dataclass(frozen=True)
class Job:
    """A step to run on the data in `folder`. The process writes its `Took` to `report`."""

    step: str
    rows: int
    characters: int
    folder: str
    report: str


@dataclass(frozen=True)
class Took:
    """The resources of a step, without imports.

    Attributes:
        wall: Wall seconds.
        cpu: CPU seconds.
        before: Peak memory of the process before the step, in bytes.
        peak: Peak memory of the process, in bytes.
        files: Bytes that the step wrote.
    """

    wall: float
    cpu: float
    before: int
    peak: int
    files: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a JSON file."""
        return cls(**json.loads(path.read_text("utf-8")))
