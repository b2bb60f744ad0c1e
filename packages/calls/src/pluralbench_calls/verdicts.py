"""What a judge's reply says: the one place where verdicts and ratings are parsed."""

import json
import re
from typing import Literal

from pluralbench_calls.retry import InvalidAnswer, after_thinking

Choice = Literal["A", "B"]
Verdict = Literal["A", "B", "C"]
"""A choice, or "C" where a judge may call both equal."""

# A verdict is the last line of a reply and nothing else stands in it, so a marker that is only quoted, or weighed on
# the way to a verdict, is not one.
CHOICE = re.compile(
    r"^[\s*_#>`]*(?:(?:final )?(?:verdict|result|answer|choice)\b|(?:最终)?(?:结论|结果|判断))?[\s:：*=\-–—.]*"
    r"\[\[\s*([ABC])\s*\]\][\s*.!。]*$",
    re.IGNORECASE,
)
RATING = re.compile(
    r"^[\s*_#>`]*(?:(?:final )?(?:rating|score)\b)?[\s:*=\-–—.]*\[\[\s*(\d{1,3})\s*(?:/\s*10\s*)?\]\][\s*.!]*$",
    re.IGNORECASE,
)
HIGHEST = 10
NO_VERDICT = "no verdict in the last line"


def parse_choice(reply: str) -> Choice:
    """The response that a reply chooses: `[[A]]` or `[[B]]` in its last line, or JSON with a `verdict`.

    Raises `InvalidAnswer`, also for a tie.
    """
    verdict = parse_verdict(reply)
    if verdict == "C":
        raise InvalidAnswer(NO_VERDICT)
    return verdict


def parse_verdict(reply: str) -> Verdict:
    """What a reply decides: `[[A]]`, `[[B]]` or, for a tie, `[[C]]` in its last line, or JSON with a `verdict`.

    Raises `InvalidAnswer`.
    """
    match (_said(reply, CHOICE, "verdict") or "").upper():
        case "A":
            return "A"
        case "B":
            return "B"
        case "C":
            return "C"
    raise InvalidAnswer(NO_VERDICT)


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
