"""What went wrong for the person at the keyboard, in one sentence."""


class UserError(Exception):
    """A mistake or a condition that the user can mend.

    The message is one sentence that names what was wrong, where, and the mend. Commands print it without a
    traceback and exit with `exit_status`. Each package derives its own errors from this one.
    """

    exit_status = 2


class RecipeError(UserError):
    """A recipe that cannot be read, or that asks for something that does not exist."""


class OutputError(UserError):
    """An output directory that this command must not write to."""
