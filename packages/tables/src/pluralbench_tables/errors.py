"""What is wrong with a file of somebody else's."""

from pluralbench_runs import UserError


class TableFileError(UserError):
    """A file that cannot be read without loss, or that is larger than what is read."""
