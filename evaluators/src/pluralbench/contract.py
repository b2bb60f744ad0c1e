"""Types for implementing a reward model, from `pluralbench_rewards`."""

from pluralbench_rewards import Group, ModelRecord, PairwiseRewardModel, Person, RewardModel, Scored

__all__ = ["Group", "ModelRecord", "PairwiseRewardModel", "Person", "RewardModel", "Scored"]
