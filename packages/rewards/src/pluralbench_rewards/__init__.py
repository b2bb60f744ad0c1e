"""The interface of reward models, and judges and functions that implement it, without torch."""

from pluralbench_rewards.contract import (
    CheckRecord,
    EarlierPair,
    Group,
    MeasuresTolerance,
    Message,
    Mode,
    ModelConfig,
    ModelRecord,
    OnScored,
    Overflow,
    Person,
    RewardModel,
    Scored,
    ScoringConfig,
    ServedRecord,
    Work,
    measured_tolerance,
    sum_work,
    tolerance_sample,
)
from pluralbench_rewards.errors import FunctionError, RewardsError
from pluralbench_rewards.functions import FunctionModel, as_resumable
from pluralbench_rewards.identity import model_commit, model_digest
from pluralbench_rewards.judge import Comparison, Judge, scores_of
from pluralbench_rewards.judge_prompts import Reply
from pluralbench_rewards.rubric import RubricCase, mean_score, overlap, parse_scores, score_aspects

__all__ = [
    "CheckRecord",
    "Comparison",
    "EarlierPair",
    "FunctionError",
    "FunctionModel",
    "Group",
    "Judge",
    "MeasuresTolerance",
    "Message",
    "Mode",
    "ModelConfig",
    "ModelRecord",
    "OnScored",
    "Overflow",
    "Person",
    "Reply",
    "RewardModel",
    "RewardsError",
    "RubricCase",
    "Scored",
    "ScoringConfig",
    "ServedRecord",
    "Work",
    "as_resumable",
    "mean_score",
    "measured_tolerance",
    "model_commit",
    "model_digest",
    "overlap",
    "parse_scores",
    "score_aspects",
    "scores_of",
    "sum_work",
    "tolerance_sample",
]
