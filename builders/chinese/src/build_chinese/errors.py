"""Errors of training data."""

from pluralbench_release.errors import BuildError


class TrainingDataError(BuildError):
    """A reward model cannot be trained on the preferences."""
