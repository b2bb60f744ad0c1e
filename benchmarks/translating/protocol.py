"""What the controller and its processes say to each other, and which files lie in their folder. Standard library only:
the controller imports it, and has to stay small.
"""

import json
from dataclasses import asdict, dataclass
from typing import Self

ENGLISH = "english.jsonl"
RECIPE = "recipe.toml"
SQLITE = "recorded.sqlite"
LEDGER = "recorded.parquet"
FACTS = "prepared.json"
TEXTS = "texts"  # LANGUAGE.json: each English text and what it is in the end
ANSWERS = "answers"  # LANGUAGE.json: each text as it was sent and what came back, the first time and the second


@dataclass(frozen=True)
class Settings:
    """What is made: so many rows in these languages (FLORES-200 codes)."""

    folder: str
    rows: int
    languages: list[str]
    seed: int


@dataclass(frozen=True)
class Packing:
    """Texts of one language put into messages. least: no packing needs fewer, by texts or by code points."""

    language: str
    texts: int
    code_points: int
    messages: int
    least: int
    seconds: float


@dataclass(frozen=True)
class Prepared:
    """What was made: texts that are translated, their code points as sent and their spans; calls of all languages."""

    texts: int
    characters: int
    spans: int
    calls: int
    packings: list[Packing]

    def to_json(self) -> str:
        """As a JSON object."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From a JSON object."""
        values = json.loads(text)
        return cls(**values | {"packings": [Packing(**packing) for packing in values["packings"]]})


@dataclass(frozen=True)
class Peer:
    """A run of `datasets.map`. processes: its `num_proc`, 0 for none. checks: whether translations are checked."""

    folder: str
    out: str
    languages: list[str]
    processes: int
    checks: bool


@dataclass(frozen=True)
class Measured:
    """What a command took: seconds by the clock, CPU seconds of all its processes, the peak of their bytes."""

    wall: float
    cpu: float
    peak: int
