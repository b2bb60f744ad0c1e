"""Errors of annotation tasks, annotations and training data."""

from pluralbench_release.errors import BuildError


class TasksError(BuildError):
    """Annotation tasks cannot be made, or a file of tasks cannot be read."""


class AnnotationsError(BuildError):
    """Annotations cannot be read, or do not belong to the tasks."""


class TrainingDataError(BuildError):
    """A reward model cannot be trained on the preferences."""
