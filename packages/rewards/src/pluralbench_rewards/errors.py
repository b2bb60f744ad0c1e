"""Errors of reward models."""

from pluralbench_runs import UserError


class RewardsError(UserError):
    """Base class of errors of reward models."""
