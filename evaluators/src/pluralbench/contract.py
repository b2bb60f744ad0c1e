"""What a model that is scored has to do with, from `pluralbench_rewards`, for those who write one."""

from pluralbench_rewards import Group, ModelRecord, Person, RewardModel, Scored

__all__ = ["Group", "ModelRecord", "Person", "RewardModel", "Scored"]
