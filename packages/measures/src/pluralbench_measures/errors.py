"""What cannot be measured, in one sentence each."""

from pluralbench_runs import UserError


class MeasuresError(UserError):
    """Data that a measure is not defined on."""
