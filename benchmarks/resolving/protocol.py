"""What the controller and its processes say to each other. Standard library only: the controller has to stay small."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

RANKINGS = "rankings.jsonl"
GRAPHS = "graphs.json"  # the judgements alone: for each prompt, (first, second, mark)
FACTS = "made.json"
SAID = "said.json"


@dataclass(frozen=True)
class Made:
    """What was made. comparisons: judgements, of which some are of a pair that was judged before."""

    prompts: int
    seed: int
    responses: int
    comparisons: int
    equal: int
    characters: int
    bytes: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a JSON file."""
        return cls(**json.loads(path.read_text("utf-8")))

    def write(self, path: Path) -> None:
        """As a JSON file."""
        path.write_text(json.dumps(asdict(self)), "utf-8")


@dataclass(frozen=True)
class Job:
    """What a process is to do (see `worker.JOBS`): with the files in `folder`, writing into `out`."""

    name: str
    folder: str
    out: str


@dataclass(frozen=True)
class Said:
    """What a process says. seconds: of each step. found: counts. digest: of the result, to be compared."""

    seconds: Mapping[str, float]
    found: Mapping[str, float]
    digest: str = ""
