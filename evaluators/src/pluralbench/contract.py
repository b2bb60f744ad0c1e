"""Types for implementing a reward model, from `pluralbench_rewards`."""

from pluralbench_rewards import Group, ModelRecord, Person, RewardModel, Scored

__all__ = ["Group", "ModelRecord", "Person", "RewardModel", "Scored"]
