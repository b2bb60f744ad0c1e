"""Errors with messages for the user."""

from collections.abc import Iterable
from difflib import get_close_matches

HEAD, TAIL = 1_200, 300  # characters of a long message that are kept: what is wrong and where, and the fix


class UserError(Exception):
    """Base class of errors that the user can fix.

    The message is one sentence that names the problem, its place and the fix. Commands print it without a traceback and
    exit with `exit_status`. What it quotes of a file may be of any length, so a long one is shortened in its middle.
    """

    exit_status = 2

    def __init__(self, message: object = "") -> None:
        super().__init__(shorten(str(message)))


class RecipeError(UserError):
    """A recipe cannot be read, or is not valid."""


class ConfigError(UserError, ValueError):
    """A configuration that a program makes has an unknown field or a bad value."""


class OutputError(UserError):
    """An output directory must not be written."""


def one_line(error: object, limit: int = 200) -> str:
    """Put the message of an error on one line without its full stop, for use inside a sentence."""
    return " ".join(str(error).split())[:limit].rstrip(". ")


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Write a count with its noun, as "1 item" or "1,200 items"."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def shorten(message: str) -> str:
    """Leave out the middle of a message that is longer than `HEAD` and `TAIL` together."""
    return message if len(message) <= HEAD + TAIL else f"{message[:HEAD]} … {message[-TAIL:]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean ...? " with the known name most similar to `word`; "" if none is similar."""
    near = get_close_matches(word, [*known], n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`? " if near else ""
