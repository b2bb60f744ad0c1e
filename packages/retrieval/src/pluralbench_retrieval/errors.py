"""Why documents cannot be ranked."""

from pluralbench_runs import UserError


class RetrievalError(UserError):
    """Root of this package's errors: an unknown retriever, or one that cannot be loaded."""


class MissingExtra(RetrievalError):
    """A retriever that needs an extra of this package."""
