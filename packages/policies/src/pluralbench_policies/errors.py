"""Errors of policies."""

from pluralbench_runs import UserError


class PolicyError(UserError):
    """A policy cannot be sampled from or optimized as requested."""
