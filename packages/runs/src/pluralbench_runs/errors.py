"""What went wrong for the person at the keyboard, in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake or a condition that the user can mend.

    The message is one sentence that names what was wrong, where, and the mend. Commands print it without a
    traceback and exit with `exit_status`. Each package derives its own errors from this one.
    """

    exit_status = 2


class RecipeError(UserError):
    """A recipe that cannot be read, or that asks for something that does not exist."""


class OutputError(UserError):
    """An output directory that must not be written."""


def one_line(error: object, limit: int = 200) -> str:
    """What another library's error says, on one line of at most `limit` characters and without its full stop.

    So it can stand inside a sentence of our own, before its full stop or in brackets.
    """
    return " ".join(str(error).split())[:limit].rstrip(". ")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question whether the name most like `word` was meant, and a space; nothing where none is like it."""
    near = get_close_matches(word, [*known], n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`? " if near else ""
