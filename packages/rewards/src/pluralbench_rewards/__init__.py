"""Reward models: load them, score responses with them, judge with language models, train them on rankings."""

from pluralbench_rewards.conversations import Group, Message, Overflow
from pluralbench_rewards.errors import ConversationError, DeviceError, ModelError, RewardsError, TrainingError
from pluralbench_rewards.judge import Comparison, Judge, Reply, scores_of
from pluralbench_rewards.load import Kind, load, load_judge, load_local
from pluralbench_rewards.models import SPECIAL, Dtype
from pluralbench_rewards.packing import Mode
from pluralbench_rewards.rewards import Classifier, Implicit
from pluralbench_rewards.scoring import RewardModel, Scored, Work, score, tolerance
from pluralbench_rewards.training import TrainingOptions, train
from pluralbench_rewards.training_batches import Ranking
from pluralbench_rewards.training_files import Trained
from pluralbench_rewards.training_model import Lora

__all__ = [
    "SPECIAL",
    "Classifier",
    "Comparison",
    "ConversationError",
    "DeviceError",
    "Dtype",
    "Group",
    "Implicit",
    "Judge",
    "Kind",
    "Lora",
    "Message",
    "Mode",
    "ModelError",
    "Overflow",
    "Ranking",
    "Reply",
    "RewardModel",
    "RewardsError",
    "Scored",
    "Trained",
    "TrainingError",
    "TrainingOptions",
    "Work",
    "load",
    "load_judge",
    "load_local",
    "score",
    "scores_of",
    "tolerance",
    "train",
]
