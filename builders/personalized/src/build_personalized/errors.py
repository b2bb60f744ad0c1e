"""Why a build of Personalized RewardBench cannot be made."""

from pluralbench_audit import AuditFailed
from pluralbench_runs import UserError

__all__ = ["AuditFailed", "BuildError", "NothingLeft", "SourceError"]


class BuildError(UserError):
    """Root of this package's errors."""


class SourceError(BuildError):
    """A source that is missing, damaged or not of the shape it should have."""


class NothingLeft(BuildError):
    """No question became a pair."""
