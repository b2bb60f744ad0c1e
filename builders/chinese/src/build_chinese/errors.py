"""Why prompts cannot be annotated, or no reward model can learn from them."""

from pluralbench_release.errors import BuildError


class TasksError(BuildError):
    """Annotation tasks that cannot be made as asked, or a file of them that cannot be read."""


class AnnotationsError(BuildError):
    """Annotations that cannot be read, or that do not belong to the tasks."""


class TrainingDataError(BuildError):
    """Preferences that no reward model can be trained on."""
