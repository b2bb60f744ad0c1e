"""The contract of everything that scores, judges, and functions as reward models. Nothing here needs torch."""

from pluralbench_rewards.contract import (
    CheckRecord,
    Description,
    EarlierPair,
    Group,
    Measured,
    Message,
    Mode,
    ModelRecord,
    OnScored,
    Overflow,
    Person,
    RewardModel,
    Scored,
    Scoring,
    ServedRecord,
    Work,
    added,
    compared,
)
from pluralbench_rewards.errors import FunctionError, RewardsError
from pluralbench_rewards.functions import FunctionModel
from pluralbench_rewards.identity import model_commit, model_digest
from pluralbench_rewards.judge import Comparison, Judge, Reply, scores_of
from pluralbench_rewards.rubric import Case, cover, mean_score, overlap, parse_scores

__all__ = [
    "Case",
    "CheckRecord",
    "Comparison",
    "Description",
    "EarlierPair",
    "FunctionError",
    "FunctionModel",
    "Group",
    "Judge",
    "Measured",
    "Message",
    "Mode",
    "ModelRecord",
    "OnScored",
    "Overflow",
    "Person",
    "Reply",
    "RewardModel",
    "RewardsError",
    "Scored",
    "Scoring",
    "ServedRecord",
    "Work",
    "added",
    "compared",
    "cover",
    "mean_score",
    "model_commit",
    "model_digest",
    "overlap",
    "parse_scores",
    "scores_of",
]
