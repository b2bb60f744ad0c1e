"""Errors of local models. Each message is one sentence for the user."""

from pluralbench_rewards import RewardsError

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error reports a lack of memory."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


class LocalError(RewardsError):
    """A model that cannot be loaded, a conversation that it does not take, or a device without room for it."""


class TrainingError(LocalError):
    """Rankings that no reward model can be trained on, or training that diverged."""
