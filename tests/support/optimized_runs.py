"""What the tests of policy optimisation share: tasks, rewards that are plain functions, options of quick runs."""

from collections.abc import Sequence
from typing import Any

from pluralbench_policies import OptimizeConfig, Task
from pluralbench_rewards import FunctionModel, Group
from reward_models import user

TASKS = [Task(user(f"say {number}"), Group(f"t{number}", user(f"say {number}"), [])) for number in range(10)]


def letters(groups: Sequence[Group]) -> list[list[float]]:
    """How often each response has the letter e."""
    return [[float(response.count("e")) for response in group.responses] for group in groups]


LETTERS = FunctionModel(letters)


def quick(algorithm: str, **changed: Any) -> OptimizeConfig:
    """Options of a run of a second."""
    chosen: dict[str, Any] = {
        "algorithm": algorithm,
        "batch_size": 8,
        "mini_batch_size": 4,
        "micro_batch_size": 8,
        "max_steps": 6,
    }
    chosen |= {"num_generations": 4, "max_tokens": 12, "save_steps": 2, "kl_steps": 3}
    chosen |= {"learning_rate": 6e-3, "critic_learning_rate": 6e-3}
    return OptimizeConfig(**chosen | changed)
