"""Reward models in this process: described, loaded, scored with, and trained on rankings.

What needs torch is imported when it is first used, so that a description costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pluralbench_local.description import Dtype, Kind, LocalModel
from pluralbench_local.errors import ConversationError, DeviceError, LocalError, ModelError, TrainingError

if TYPE_CHECKING:
    from pluralbench_local.classifiers import Classifier, Implicit
    from pluralbench_local.load import load
    from pluralbench_local.models import SPECIAL
    from pluralbench_local.scoring import Options, score, tolerance
    from pluralbench_local.training import TrainingOptions, train
    from pluralbench_local.training_batches import Ranking
    from pluralbench_local.training_files import Trained
    from pluralbench_local.training_model import Lora

_LATER = {
    "SPECIAL": "models",
    "Classifier": "classifiers",
    "Implicit": "classifiers",
    "Lora": "training_model",
    "Options": "scoring",
    "Ranking": "training_batches",
    "Trained": "training_files",
    "TrainingOptions": "training",
    "load": "load",
    "score": "scoring",
    "tolerance": "scoring",
    "train": "training",
}

__all__ = [
    "SPECIAL",
    "Classifier",
    "ConversationError",
    "DeviceError",
    "Dtype",
    "Implicit",
    "Kind",
    "LocalError",
    "LocalModel",
    "Lora",
    "ModelError",
    "Options",
    "Ranking",
    "Trained",
    "TrainingError",
    "TrainingOptions",
    "load",
    "score",
    "tolerance",
    "train",
]


def __getattr__(name: str) -> Any:
    """What needs torch, imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value  # a submodule of the same name would otherwise hide it
    return value
