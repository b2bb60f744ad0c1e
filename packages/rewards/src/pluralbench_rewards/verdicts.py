"""What a judge's reply says: the one place where verdicts and ratings are parsed."""

import json
import re
from typing import Literal

from pluralbench_calls import InvalidAnswer, after_thinking

Choice = Literal["A", "B"]

# A verdict is the last line of a reply and nothing else stands in it, so a marker that is only quoted, or weighed on
# the way to a verdict, is not one.
CHOICE = re.compile(
    r"^[\s*_#>`]*(?:(?:final )?(?:verdict|result|answer|choice)\b)?[\s:*=\-–—.]*\[\[\s*([AB])\s*\]\][\s*.!]*$",
    re.IGNORECASE,
)
RATING = re.compile(
    r"^[\s*_#>`]*(?:(?:final )?(?:rating|score)\b)?[\s:*=\-–—.]*\[\[\s*(\d{1,3})\s*(?:/\s*10\s*)?\]\][\s*.!]*$",
    re.IGNORECASE,
)
HIGHEST = 10


def parse_choice(reply: str) -> Choice:
    """The response that a reply chooses: `[[A]]` or `[[B]]` in its last line, or JSON with a `verdict`.

    Raises `InvalidAnswer`.
    """
    said = _said(reply, CHOICE, "verdict")
    if said is None or said.upper() not in {"A", "B"}:
        raise InvalidAnswer("no verdict in the last line")
    return "A" if said.upper() == "A" else "B"


def parse_rating(reply: str) -> float:
    """The rating in a reply: `[[1]]` to `[[10]]` in its last line, or JSON with a `rating`. Raises `InvalidAnswer`."""
    said = _said(reply, RATING, "rating")
    if said is None or not said.isdecimal():
        raise InvalidAnswer("no rating in the last line")
    if not 1 <= int(said) <= HIGHEST:
        raise InvalidAnswer("a rating off the scale")
    return float(said)


def _said(reply: str, marker: re.Pattern[str], key: str) -> str | None:
    text = after_thinking(reply).strip()
    if text.startswith("{"):
        try:
            value = json.loads(text)[key]
        except (ValueError, KeyError, TypeError):
            return None
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    matched = marker.match(text.rsplit("\n", 1)[-1].strip())
    return None if matched is None else matched[1]
