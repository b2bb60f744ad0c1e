"""Errors of local models. Each message is one sentence for the user."""

from pluralbench_rewards import RewardsError


class LocalError(RewardsError):
    """Base class of the errors of local models.

    ModelError         a model that cannot be loaded, or is of another kind
    ConversationError  conversations that the model's template or length limit does not allow
    DeviceError        a device that is not available, or has too little memory
    TrainingError      rankings that no reward model can be trained on, or training that diverged
    """


class ModelError(LocalError):
    """A model that cannot be loaded, or is of another kind."""


class ConversationError(LocalError):
    """Conversations that the model's template or length limit does not allow."""


class DeviceError(LocalError):
    """A device that is not available, or has too little memory."""


class TrainingError(LocalError):
    """Rankings that no reward model can be trained on, or training that diverged."""
