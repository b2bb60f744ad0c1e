"""Why a build of persona judge cannot be made."""

from pluralbench_runs import UserError


class BuildError(UserError):
    """Root of this package's errors."""


class SourceError(BuildError):
    """A source that is missing, damaged or not of the shape it should have, or that holds less than was asked for."""


class NothingLeft(BuildError):
    """No item was left."""
