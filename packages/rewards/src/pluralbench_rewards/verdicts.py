"""What a judge's reply says: the one place where verdicts and ratings are parsed."""

import re
from typing import Literal

from pluralbench_calls import InvalidAnswer, after_thinking

Choice = Literal["A", "B"]

# A verdict is the last line of a reply and nothing else stands in it, so a marker that is only quoted, or weighed on
# the way to a verdict, is not one.
CHOICE = re.compile(
    r"^\W*(?:(?:final )?(?:verdict|result|answer|choice)\b)?[\s:*=\-–—.]*\[\[\s*([AB])\s*\]\][\s*.!]*$", re.IGNORECASE
)
RATING = re.compile(
    r"^\W*(?:(?:final )?(?:rating|score)\b)?[\s:*=\-–—.]*\[\[\s*(\d{1,3})\s*(?:/\s*10\s*)?\]\][\s*.!]*$", re.IGNORECASE
)
HIGHEST = 10


def parse_choice(reply: str) -> Choice:
    """The response that a reply chooses, by the `[[A]]` or `[[B]]` in its last line. Raises `InvalidAnswer`."""
    matched = CHOICE.match(_last_line(reply))
    if matched is None:
        raise InvalidAnswer("no verdict in the last line")
    return "A" if matched[1].upper() == "A" else "B"


def parse_rating(reply: str) -> float:
    """The rating in a reply's last line, `[[1]]` to `[[10]]`. Raises `InvalidAnswer`."""
    matched = RATING.match(_last_line(reply))
    if matched is None:
        raise InvalidAnswer("no rating in the last line")
    if not 1 <= int(matched[1]) <= HIGHEST:
        raise InvalidAnswer("a rating off the scale")
    return float(matched[1])


def _last_line(reply: str) -> str:
    lines = [line for line in after_thinking(reply).split("\n") if line.strip()]
    return lines[-1].strip() if lines else ""
