"""Errors of releases, their sources and their builds."""

from pluralbench_runs import UserError


class ReleaseError(UserError):
    """Base class: a release that is damaged, missing or cannot be rebuilt or published."""


class AuditFailed(UserError):
    """Pairs that exceed a limit of the recipe; exits with status 1, like a failed check."""

    exit_status = 1


class BuildError(ReleaseError):
    """Base class of builders' errors: a release that cannot be built."""


class SourceError(BuildError):
    """A source that is missing, damaged, in a wrong format, or too small."""


class TablesError(SourceError):
    """Tables that are missing or cannot be read."""


class NoSplit(TablesError):
    """A config without the requested split."""
