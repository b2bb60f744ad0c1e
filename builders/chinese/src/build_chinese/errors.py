"""Why a build of CheemsBench or CheemsPreference cannot be made."""

from pluralbench_runs import UserError


class BuildError(UserError):
    """Root of this package's errors."""


class SourceError(BuildError):
    """Prompts, responses or a taxonomy that are missing, damaged or not of the shape they should have."""


class TasksError(BuildError):
    """Annotation tasks that cannot be made as asked, or a file of them that cannot be read."""


class AnnotationsError(BuildError):
    """Annotations that cannot be read, or that do not belong to the tasks."""


class TrainingDataError(BuildError):
    """Preferences that no reward model can be trained on."""


class NothingLeft(BuildError):
    """No prompt was left."""
