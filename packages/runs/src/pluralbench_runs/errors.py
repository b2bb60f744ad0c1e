"""Errors that are told to the user in one sentence."""


class UserError(Exception):
    """A mistake or a condition that the user can mend.

    The message is one sentence that says what was wrong, where, and how to mend it. Commands print it without a
    traceback and exit with `exit_status`. Each package derives its own errors from this class.
    """

    exit_status = 2


class RecipeError(UserError):
    """A recipe that cannot be read, or that asks for something that does not exist."""


class OutputError(UserError):
    """An output directory that must not be written."""
