from .classifiers import Classifier, Implicit
from .description import Dtype, Kind, LocalModel
from .errors import ConversationError, DeviceError, LocalError, ModelError, TrainingError
from .loading import load
from .models import SPECIAL
from .personal.backbones import load_backbone
from .personal.contract import Backbone, BackboneRecord
from .personal.embedding import Embedded, embed
from .personal.scoring import Personal
from .personal.store import EmbeddingStore
from .scoring import Options, score, tolerance
from .served.description import ServedModel
from .training import train
from .training_batches import Ranking
from .training_job import Trained
from .training_options import Lora, TrainingOptions
from .untrained import untrained

__all__ = [
    "SPECIAL",
    "Backbone",
    "BackboneRecord",
    "Classifier",
    "ConversationError",
    "DeviceError",
    "Dtype",
    "Embedded",
    "EmbeddingStore",
    "Implicit",
    "Kind",
    "LocalError",
    "LocalModel",
    "Lora",
    "ModelError",
    "Options",
    "Personal",
    "Ranking",
    "ServedModel",
    "Trained",
    "TrainingError",
    "TrainingOptions",
    "embed",
    "load",
    "load_backbone",
    "score",
    "tolerance",
    "train",
    "untrained",
]
