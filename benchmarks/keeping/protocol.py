"""What the controller and its processes say to each other. Standard library only: the controller has to stay small."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FACTS = "made.json"
SAID = "said.json"
PHASES = ("reading", "scoring calls", "journal", "metrics", "writing", "reading back")
SCORE, OTHER, STOPPED, RESUMED = "score", "score by the other model", "stopped before the metrics", "resumed"


@dataclass(frozen=True)
class Settings:
    """What is made in a folder: so many items of each benchmark."""

    folder: str
    items: int
    benchmarks: list[str]
    seed: int


@dataclass(frozen=True)
class Made:
    """A benchmark that was made. rows: items, of rankings with several responses each. ids: one of them, to be shown.

    characters: of prompts and responses. bytes: of its files.
    """

    rows: int
    responses: int
    characters: int
    bytes: int
    shown: str


@dataclass(frozen=True)
class Job:
    """A run to be made. how: one of the ways above. said: where the process says what it took."""

    how: str
    benchmark: str
    data: str
    out: str
    said: str


@dataclass(frozen=True)
class Phase:
    """What a phase took, seconds. peak: the most bytes that the process had until its end."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0


@dataclass(frozen=True)
class Said:
    """What a process says: its phases, and digests of the items and metrics of the run."""

    phases: dict[str, Phase]
    found: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a JSON file."""
        values = json.loads(path.read_text("utf-8"))
        return cls({name: Phase(**phase) for name, phase in values["phases"].items()}, values["found"])
