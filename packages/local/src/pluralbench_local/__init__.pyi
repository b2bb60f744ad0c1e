from .config import Dtype, Kind, LocalModel
from .errors import LocalError, TrainingError
from .general_preference import GeneralPreferenceModel
from .loading import load, load_pairwise
from .model_kinds import KINDS
from .pairwise import LocalPairwiseModel
from .personal.backbones import Backbone, load_backbone
from .personal.embedding import EmbeddedCorpus, EmbeddingStore, embed
from .personal.scoring import Personal
from .personal.texts import BackboneRecord
from .scoring import LocalRewardModel, score
from .served.config import ServedModel
from .training import check_steps, train, untrained
from .training_batches import Ranking
from .training_config import LoraOptions, TrainingConfig
from .training_job import Trained

__all__ = [
    "KINDS",
    "Backbone",
    "BackboneRecord",
    "Dtype",
    "EmbeddedCorpus",
    "EmbeddingStore",
    "GeneralPreferenceModel",
    "Kind",
    "LocalError",
    "LocalModel",
    "LocalPairwiseModel",
    "LocalRewardModel",
    "LoraOptions",
    "Personal",
    "Ranking",
    "ServedModel",
    "Trained",
    "TrainingConfig",
    "TrainingError",
    "check_steps",
    "embed",
    "load",
    "load_backbone",
    "load_pairwise",
    "score",
    "train",
    "untrained",
]
