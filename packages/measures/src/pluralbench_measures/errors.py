"""The error of statistics on unusable data."""

from pluralbench_runs import UserError


class MeasuresError(UserError):
    """Data on which a statistic is undefined."""
