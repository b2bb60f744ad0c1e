"""What the controller and its processes say to each other. Standard library only: the controller has to stay small."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# By step, what is measured in a process of its own. They run in this order, and later ones read what earlier ones made.
STEPS = {
    "validate": "a table against its schema",
    "digest": "content digest of a table",
    "release": "a release written: checks, digests, Parquet, card, sums",
    "verify": "a release verified",
    "read": "items of the pairs read, as `score` does",
    "score": "the pairs scored by a function: settings, journal, decisions, metrics, run",
    "go on": "the same where every score stood in the journal",
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
    """A step to be done. folder: of this number of rows. said: where the process says what it took."""

    step: str
    rows: int
    characters: int
    folder: str
    said: str


@dataclass(frozen=True)
class Took:
    """What a step took, imports left out: seconds by the clock and of the CPU.

    before, peak: the most bytes of its process until the step began, and in all. files: bytes of what it wrote.
    """

    wall: float
    cpu: float
    before: int
    peak: int
    files: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a JSON file."""
        return cls(**json.loads(path.read_text("utf-8")))
