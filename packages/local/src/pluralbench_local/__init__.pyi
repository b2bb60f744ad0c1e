from .classifiers import Classifier, Implicit
from .description import Dtype, Kind, LocalModel
from .errors import ConversationError, DeviceError, LocalError, ModelError, TrainingError
from .loading import load
from .models import SPECIAL
from .scoring import Options, score, tolerance
from .training import train
from .training_batches import Ranking
from .training_files import Trained
from .training_options import Lora, TrainingOptions
from .untrained import untrained

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
    "untrained",
]
