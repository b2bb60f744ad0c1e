"""Errors of table files."""

from pluralbench_runs import UserError


class TableFileError(UserError):
    """A file cannot be read without loss, or exceeds a limit."""
