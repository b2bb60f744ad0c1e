from .classifiers import Classifier, Implicit
from .config import Dtype, Kind, LocalModel
from .errors import LocalError, TrainingError
from .loading import load
from .models import SPECIAL
from .personal.backbones import load_backbone
from .personal.contract import Backbone, BackboneRecord
from .personal.embedding import EmbeddedCorpus, embed
from .personal.scoring import Personal
from .personal.store import EmbeddingStore
from .scoring import RunOptions, score, tolerance
from .served.config import ServedModel
from .training import train
from .training_batches import Ranking
from .training_job import Trained
from .training_options import LoraOptions, TrainingConfig
from .untrained import untrained

__all__ = [
    "SPECIAL",
    "Backbone",
    "BackboneRecord",
    "Classifier",
    "Dtype",
    "EmbeddedCorpus",
    "EmbeddingStore",
    "Implicit",
    "Kind",
    "LocalError",
    "LocalModel",
    "LoraOptions",
    "Personal",
    "Ranking",
    "RunOptions",
    "ServedModel",
    "Trained",
    "TrainingConfig",
    "TrainingError",
    "embed",
    "load",
    "load_backbone",
    "score",
    "tolerance",
    "train",
    "untrained",
]
