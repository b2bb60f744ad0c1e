"""Messages between the controller and its workers. Standard library only, because other environments import it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Device = Literal["cpu", "cuda"]
Dtype = Literal["bfloat16", "float32"]
WORKLOADS_FILE = "workloads.json"


@dataclass(frozen=True)
class Conversations:
    """A prompt with the responses to compare."""

    prompt: str
    responses: list[str]


@dataclass(frozen=True)
class Settings:
    """Settings of a worker.

    Attributes:
        strategy: MODULE:FUNCTION of this package.
        folder: Folder of models and texts.
        device: Device of the model.
        dtype: Precision of the model.
        threads: Threads of the process.
        vllm_tokens: Tokens of a step of vLLM.
    """

    strategy: str
    folder: str
    device: Device
    dtype: Dtype
    threads: int
    vllm_tokens: int = 2048


@dataclass(frozen=True)
class Outcome:
    """The result of a strategy: scores by group, computed tokens with padding, CPU seconds of parts."""

    scores: list[list[float]]
    computed_tokens: int
    parts: dict[str, float] = field(default_factory=dict)


Score = Callable[[list[Conversations]], Outcome]


@dataclass(frozen=True)
class Answer:
    """An outcome with the CPU seconds of all threads and the wall seconds."""

    cpu: float
    wall: float
    scores: list[list[float]]
    computed_tokens: int
    parts: dict[str, float]


def write_workloads(workloads: dict[str, list[Conversations]], folder: Path) -> None:
    """Write the texts of all workloads for the workers."""
    plain = {name: [asdict(group) for group in groups] for name, groups in workloads.items()}
    (folder / WORKLOADS_FILE).write_text(json.dumps(plain), "utf-8")


def read_workloads(folder: Path) -> dict[str, list[Conversations]]:
    """Read the texts of all workloads."""
    plain = json.loads((folder / WORKLOADS_FILE).read_text("utf-8"))
    return {name: [Conversations(**group) for group in groups] for name, groups in plain.items()}
