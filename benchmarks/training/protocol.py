"""What the controller and its runs say to each other. Nothing but the standard library: TRL's environment imports it
too.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

RANKINGS_FILE = "rankings.json"


@dataclass(frozen=True)
class Ranked:
    """A prompt and the responses to it, best first; no two are tied."""

    id: str
    prompt: str
    responses: list[str]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs, the better response first."""
        texts = self.responses
        return [(better, worse) for place, better in enumerate(texts) for worse in texts[place + 1 :]]


@dataclass(frozen=True)
class Settings:
    """What a run needs to know. strategy: MODULE:FUNCTION of this package. base, out: model folders.

    rows: conversations in a forward pass of TRL, and responses in a batch of ours. accumulation: of the strategy.
    """

    strategy: str
    base: str
    rankings: str
    out: str
    rows: int
    accumulation: int
    epochs: int
    learning_rate: float
    max_length: int
    threads: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a run did, over all epochs: steps, pairs in its losses, conversations encoded, tokens with padding."""

    steps: int
    pairs: int
    encoded: int
    tokens: int


@dataclass(frozen=True)
class Answer:
    """An outcome with what it took, from texts and a model folder to a saved model: CPU seconds and by the clock."""

    cpu: float
    wall: float
    steps: int
    pairs: int
    encoded: int
    tokens: int


Train = Callable[[list[Ranked]], Outcome]


def write_rankings(rankings: list[Ranked], path: Path) -> None:
    """Write rankings for a run."""
    path.write_text(json.dumps([asdict(ranking) for ranking in rankings], ensure_ascii=False), "utf-8")


def read_rankings(path: Path) -> list[Ranked]:
    """Rankings as `write_rankings` wrote them."""
    return [Ranked(**ranking) for ranking in json.loads(path.read_text("utf-8"))]
