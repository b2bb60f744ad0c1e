"""Why a build of Personalized RewardBench cannot be made."""

from pluralbench_runs import UserError


class BuildError(UserError):
    """Root of this package's errors."""


class SourceError(BuildError):
    """A source that is missing, damaged or not of the shape it should have."""


class NothingLeft(BuildError):
    """No question became a pair."""


class AuditFailed(BuildError):
    """The rows break a limit that the recipe sets; like a failed check, it exits with 1."""

    exit_status = 1
