"""What the tests of policy optimisation share: tasks, rewards that are plain functions, options of quick runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pluralbench_local import Trained
from pluralbench_local.training_job import read_log
from pluralbench_policies import OptimizeOptions, Task
from pluralbench_rewards import FunctionModel, Group
from reward_models import user

TASKS = [Task(user(f"say {number}"), Group(f"t{number}", user(f"say {number}"), [])) for number in range(10)]


def letters(groups: Sequence[Group]) -> list[list[float]]:
    """How often each response has the letter e."""
    return [[float(response.count("e")) for response in group.responses] for group in groups]


LETTERS = FunctionModel(letters)


def quick(algorithm: str, **changed: Any) -> OptimizeOptions:
    """Options of a run of a second."""
    chosen: dict[str, Any] = {"algorithm": algorithm, "prompts": 8, "mini_batch": 4, "micro_batch": 8, "steps": 10}
    chosen |= {"generations": 4, "max_tokens": 12, "checkpoint_every": 4, "kl_every": 5}
    chosen |= {"learning_rate": 3e-3, "critic_learning_rate": 3e-3}
    return OptimizeOptions(**chosen | changed)


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log without their seconds, which two runs never share."""
    return [{key: value for key, value in line.items() if key != "seconds"} for line in read_log(folder)]


def weights(optimized: Trained) -> bytes:
    """The file of weights."""
    return (optimized.folder / "model.safetensors").read_bytes()
