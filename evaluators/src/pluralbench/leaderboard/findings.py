"""What a check of a run found."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Level = Literal["refused", "unusual"]
NAMED = 3


class Finding(NamedTuple):
    """One thing that is wrong with a run, or that a reader should know of it.

    level: "refused" where the run's files do not agree with each other or with the data, so that it cannot be accepted;
    "unusual" where it is valid but made in another way than most. about: in a word what it is of, such as "metrics".
    text: the sentence.
    """

    level: Level
    about: str
    text: str


def refused(about: str, text: str) -> Finding:
    """A finding for which a run cannot be accepted."""
    return Finding("refused", about, text)


def unusual(about: str, text: str) -> Finding:
    """A finding that a reader should know of."""
    return Finding("unusual", about, text)


def is_refused(findings: Iterable[Finding]) -> bool:
    """Whether a run with these findings cannot be accepted."""
    return any(found.level == "refused" for found in findings)


def named(names: Sequence[str], of: int) -> str:
    """The first of so many names, for a sentence."""
    return ", ".join(names[:NAMED]) + (", …" if of > min(len(names), NAMED) else "")
