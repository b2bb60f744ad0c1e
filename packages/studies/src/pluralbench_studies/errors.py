"""Errors of annotation studies."""

from pluralbench_runs import UserError


class StudyError(UserError):
    """Items, tasks, answers or a folder that cannot be used; the message is one sentence for the user."""
