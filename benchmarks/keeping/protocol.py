"""Messages between the controller and its processes. Standard library only, to keep the controller small."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FACTS = "made.json"
REPORT = "report.json"
PHASES = ("reading", "scoring calls", "journal", "metrics", "writing", "reading back")
SCORE, OTHER, STOPPED, RESUMED = "score", "score by the other model", "stopped before the metrics", "resumed"


@dataclass(frozen=True)
class Settings:
    """Settings of the generated data: a number of items of each benchmark."""

    folder: str
    items: int
    benchmarks: list[str]
    seed: int


@dataclass(frozen=True)
class Made:
    """A generated benchmark.

    Attributes:
        rows: Number of items.
        responses: Number of responses.
        characters: Characters of prompts and responses.
        bytes: Size of its files.
        shown: Id of the item for `show`.
    """

    rows: int
    responses: int
    characters: int
    bytes: int
    shown: str


@dataclass(frozen=True)
class Job:
    """A run to make in one of the ways above. The process writes its report to `report`."""

    how: str
    benchmark: str
    data: str
    out: str
    report: str


@dataclass(frozen=True)
class Phase:
    """Seconds of a phase, and the peak memory of the process until its end in bytes."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0


@dataclass(frozen=True)
class Report:
    """The report of a process: its phases, and digests of the items and metrics of the run."""

    phases: dict[str, Phase]
    digests: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a JSON file."""
        values = json.loads(path.read_text("utf-8"))
        return cls({name: Phase(**phase) for name, phase in values["phases"].items()}, values["digests"])
