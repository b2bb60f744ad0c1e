"""What can go wrong with a model in this process, in one sentence each."""

from pluralbench_rewards import RewardsError


class LocalError(RewardsError):
    """A model, a conversation or a machine that cannot do what was asked.

    ModelError         a model that cannot be loaded, or is not of the kind that was asked for
    ConversationError  conversations that the model's template or its length does not admit
    DeviceError        a device that is not there, or has too little memory
    TrainingError      rankings that no reward model can be trained on, or training that went astray
    """


class ModelError(LocalError):
    """A model that cannot be loaded, or is not of the kind that was asked for."""


class ConversationError(LocalError):
    """Conversations that the model's template or its length does not admit."""


class DeviceError(LocalError):
    """A device that is not there, or has too little memory."""


class TrainingError(LocalError):
    """Rankings that no reward model can be trained on, or training that went astray."""
