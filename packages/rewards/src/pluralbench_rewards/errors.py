"""What can go wrong with a reward model, in one sentence each."""

from pluralbench_runs import UserError


class RewardsError(UserError):
    """A reward model that cannot do what was asked.

    FunctionError  a function that does not give a number for each response
    """


class FunctionError(RewardsError):
    """A function that does not give a number for each response."""
