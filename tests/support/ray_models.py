"""Reward models that a worker, of a Ray cluster or of this machine, has in a moment, without torch."""

import os
import signal
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pluralbench_rewards import FunctionModel, Group, ModelRecord, RewardsError, ScoringConfig
from pluralbench_runs import FrozenModel

NOWHERE = "There is no model in ./nowhere; give its folder."


class Broken(FrozenModel):
    """A description of a model that cannot be loaded."""

    loader: ClassVar[str] = "ray_models:load_broken"

    def record(self) -> ModelRecord:
        """What is known of it."""
        return ModelRecord(name="broken", kind="broken")


class Elsewhere(FrozenModel):
    """A description of a model whose files differ from process to process."""

    loader: ClassVar[str] = "ray_models:load_broken"

    def record(self) -> ModelRecord:
        """What is known of it."""
        return ModelRecord(name="./model", kind="classifier", digest=f"{os.getpid():064}")


def load_broken(model: FrozenModel, scoring: ScoringConfig) -> None:
    """Raise what a model's loader raises."""
    raise RewardsError(NOWHERE)


def by_bytes(log: Path, *, deadly: str = "", pause: float = 0.0) -> Callable[[Sequence[Group]], list[list[float]]]:
    """A function that scores by the texts alone, and writes down the ids that it was given.

    deadly: the id at which the first worker that meets it kills itself. pause: seconds for each group. Defined in here
    the function travels as code.
    """
    path = str(log)

    def scores(groups: Sequence[Group]) -> list[list[float]]:
        found = []
        for group in groups:
            if group.id == deadly:
                try:
                    os.close(os.open(f"{path}.killed", os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            time.sleep(pause)
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(f"{group.id}\n")
            texts = [f"{group.messages} {answer}" for answer in group.responses]
            found.append([zlib.crc32(text.encode()) / 7 for text in texts])
        return found

    return scores


def load_by_bytes(log: Path, **options: Any) -> FunctionModel:
    """Load the model of `by_bytes` in a process that imports this module."""
    return FunctionModel(by_bytes(log, **options))
