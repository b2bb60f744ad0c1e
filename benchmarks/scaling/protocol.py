"""Messages between the controller and its processes. Standard library only, to keep the controller small."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Description by step. Steps run in this order, and later ones read the files of earlier ones.
STEPS = {
    "validate": "a table against its schema",
    "digest": "content digest of a table",
    "release": "a release written: checks, digests, Parquet, card, sums",
    "verify": "a release verified",
    "read": "items of the pairs read, as `score` does",
    "score": "the pairs scored by a function: settings, journal, decisions, metrics, run",
    "go on": "the same with every score in the journal",
    "score, 24 languages": "as many pairs in 24 languages and 23 subsets",
    "metrics": "metrics with intervals, from the run's items",
    "metrics, 24 languages": "the same of the languages",
    "report": "the run read and reported",
    "submit": "the run checked for a leaderboard",
    "ledger: record": "answers recorded, 64 at a time",
    "ledger: resume": "a ledger opened, which of all keys it knows",
    "ledger: find": "all answers read by their keys",
    "ledger: export": "the ledger written as Parquet",
    "ledger: import": "that Parquet taken into an empty ledger",
    "ledger: import SQLite": "a working ledger taken into an empty one",
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
