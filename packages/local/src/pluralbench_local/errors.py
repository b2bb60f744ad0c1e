"""Errors of local models. Each message is one sentence for the user."""

from pluralbench_rewards import RewardsError


class LocalError(RewardsError):
    """A model that cannot be loaded, a conversation that it does not take, or a device without room for it."""


class TrainingError(LocalError):
    """Rankings that no reward model can be trained on, or training that diverged."""
