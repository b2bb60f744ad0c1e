"""Messages between the controller and its runs. Standard library only, because TRL's environment imports it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

RANKINGS_FILE = "rankings.json"


@dataclass(frozen=True)
class Ranked:
    """A prompt with its responses, best first, without ties."""

    id: str
    prompt: str
    responses: list[str]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs, with the better response first."""
        texts = self.responses
        return [(better, worse) for place, better in enumerate(texts) for worse in texts[place + 1 :]]


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes:
        strategy: MODULE:FUNCTION of this package.
        base: Folder of the base model.
        rankings: File of the rankings.
        out: Folder of the trained model.
        rows: Conversations per forward pass of TRL, and responses per batch of ours.
        accumulation: Gradient accumulation steps.
        epochs: Epochs.
        learning_rate: Learning rate.
        max_length: Maximum tokens per conversation.
        threads: Threads.
        seed: Seed.
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
    """The work of a run over all epochs: steps, pairs in losses, encoded conversations, tokens with padding."""

    steps: int
    pairs: int
    encoded: int
    tokens: int


@dataclass(frozen=True)
class Answer:
    """An outcome with the CPU and wall seconds, from texts and a base model to a saved model."""

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
    """Read the rankings of `write_rankings`."""
    return [Ranked(**ranking) for ranking in json.loads(path.read_text("utf-8"))]
