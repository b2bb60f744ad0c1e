"""What can be wrong with a release."""

from pluralbench_runs import UserError


class ReleaseError(UserError):
    """Root of this package's errors: a directory that is no release, or one that cannot be rebuilt here."""


class TablesError(ReleaseError):
    """Tables that cannot be found or read."""


class NoSplit(TablesError):
    """A config that has no rows of the split that was asked for."""
