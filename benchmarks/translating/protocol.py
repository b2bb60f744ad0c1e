"""Messages between the controller and its processes, and the names of files. Standard library only, to keep the
controller small.
"""

import json
from dataclasses import asdict, dataclass
from typing import Self

ENGLISH = "english.jsonl"
RECIPE = "recipe.toml"
SQLITE = "recorded.sqlite"
LEDGER = "recorded.parquet"
FACTS = "prepared.json"
TEXTS = "texts"  # LANGUAGE.json: each English text with its final translation
ANSWERS = "answers"  # LANGUAGE.json: each text as sent, with the first and second replies


@dataclass(frozen=True)
class Settings:
    """Settings of the generated data: a number of rows in languages (FLORES-200 codes)."""

    folder: str
    rows: int
    languages: list[str]
    seed: int


@dataclass(frozen=True)
class Packing:
    """Messages for the texts of one language, and the minimum by number of texts and code points."""

    language: str
    texts: int
    code_points: int
    messages: int
    least: int
    seconds: float


@dataclass(frozen=True)
class Prepared:
    """The generated data: translated texts, their code points when sent and their spans; calls of all languages."""

    texts: int
    characters: int
    spans: int
    calls: int
    packings: list[Packing]

    def to_json(self) -> str:
        """Format as a JSON object."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a JSON object."""
        values = json.loads(text)
        return cls(**values | {"packings": [Packing(**packing) for packing in values["packings"]]})


@dataclass(frozen=True)
class Peer:
    """A run of `datasets.map` with `num_proc=processes` (0: none), with or without checks."""

    folder: str
    out: str
    languages: list[str]
    processes: int
    checks: bool


@dataclass(frozen=True)
class Measured:
    """The resources of a command: wall seconds, CPU seconds of all its processes, peak memory in bytes."""

    wall: float
    cpu: float
    peak: int
