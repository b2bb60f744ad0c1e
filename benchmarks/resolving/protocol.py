"""Messages between the controller and its processes. Standard library only, to keep the controller small."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

RANKINGS = "rankings.jsonl"
GRAPHS = "graphs.json"  # the judgments alone: for each prompt, (first, second, mark)
FACTS = "made.json"
REPORT = "report.json"


@dataclass(frozen=True)
class Made:
    """The generated data; `comparisons` counts judgments, including repeated ones of a pair."""

    prompts: int
    seed: int
    responses: int
    comparisons: int
    equal: int
    characters: int
    bytes: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a JSON file."""
        return cls(**json.loads(path.read_text("utf-8")))

    def write(self, path: Path) -> None:
        """Write a JSON file."""
        path.write_text(json.dumps(asdict(self)), "utf-8")


@dataclass(frozen=True)
class Job:
    """A job of `worker.JOBS` on the files in `folder`, with outputs in `out`."""

    name: str
    folder: str
    out: str


@dataclass(frozen=True)
class Report:
    """The report of a process: seconds of each step, counts, and a digest of the result."""

    seconds: Mapping[str, float]
    counts: Mapping[str, float]
    digest: str = ""
