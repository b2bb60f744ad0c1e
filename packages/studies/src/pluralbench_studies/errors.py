"""What keeps a study with people from going on, in one sentence each."""

from pluralbench_runs import UserError


class StudyError(UserError):
    """Root of this package's errors."""


class AssignmentError(StudyError):
    """Items that cannot be given to people as asked, or files for them that are there already."""


class AnswersError(StudyError):
    """Answers that cannot be read, or that do not belong to the items."""
