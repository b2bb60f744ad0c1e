"""What can be wrong with a release, with what it is built from, or with how it is built."""

from pluralbench_runs import UserError


class ReleaseError(UserError):
    """Root of this package's errors: a directory that is no release, or one that cannot be rebuilt here."""


class AuditFailed(UserError):
    """The pairs break a limit that the recipe sets; like a failed check, it exits with 1."""

    exit_status = 1


class BuildError(ReleaseError):
    """Root of the errors of builders: a release that cannot be made as asked."""


class SourceError(BuildError):
    """A source that is missing, damaged or not of the shape it should have, or that holds less than was asked for."""


class TablesError(SourceError):
    """Tables that cannot be found or read."""


class NoSplit(TablesError):
    """A config that has no rows of the split that was asked for."""


class NothingLeft(BuildError):
    """No row was left."""
