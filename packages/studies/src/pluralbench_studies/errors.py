"""Errors of annotation studies. Each message is one sentence for the user."""

from pluralbench_runs import UserError


class StudyError(UserError):
    """Base class of this package's errors."""


class AssignmentError(StudyError):
    """Items that cannot be assigned, or files for annotators that exist already."""


class AnswersError(StudyError):
    """Answers that cannot be read, or do not belong to the items."""
