"""Reward models: load them, score responses with them, judge with language models."""

from pluralbench_rewards.conversations import Group, Message, Overflow
from pluralbench_rewards.errors import ConversationError, DeviceError, ModelError, RewardsError
from pluralbench_rewards.judge import Comparison, Judge, Reply, scores_of
from pluralbench_rewards.load import Kind, load, load_judge, load_local
from pluralbench_rewards.models import SPECIAL, Dtype
from pluralbench_rewards.packing import Mode
from pluralbench_rewards.rewards import Classifier, Implicit
from pluralbench_rewards.scoring import RewardModel, Scored, Work, score, tolerance
from pluralbench_rewards.verdicts import Choice, parse_choice, parse_rating

__all__ = [
    "SPECIAL",
    "Choice",
    "Classifier",
    "Comparison",
    "ConversationError",
    "DeviceError",
    "Dtype",
    "Group",
    "Implicit",
    "Judge",
    "Kind",
    "Message",
    "Mode",
    "ModelError",
    "Overflow",
    "Reply",
    "RewardModel",
    "RewardsError",
    "Scored",
    "Work",
    "load",
    "load_judge",
    "load_local",
    "parse_choice",
    "parse_rating",
    "score",
    "scores_of",
    "tolerance",
]
