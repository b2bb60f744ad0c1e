"""What can go wrong with a policy, in one sentence each."""

from pluralbench_runs import UserError


class PolicyError(UserError):
    """A policy that cannot be sampled from or optimised as it was asked for."""
