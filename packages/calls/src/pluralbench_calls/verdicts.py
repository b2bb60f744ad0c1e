"""What a judge's reply says: the one place where verdicts and ratings are parsed."""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pluralbench_calls.retry import InvalidAnswer, after_thinking

Choice = Literal["A", "B"]
Verdict = Literal["A", "B", "C"]
"""A choice, or "C" where a judge may call both equal."""


class CertainChoice(NamedTuple):
    """A choice, and how certain of it the judge says it is, from 1 to 100."""

    choice: Choice
    certainty: int


# A verdict is the last line of a reply and nothing else stands in it, so a marker that is only quoted, or weighed on
# the way to a verdict, is not one.
_MARKED = (
    r"^[\s*_#>`]*(?:(?:final )?(?:verdict|result|answer|choice)\b|(?:最终)?(?:结论|结果|判断))?[\s:：*=\-–—.]*"
    r"\[\[\s*([ABC])\s*\]\]"
)
CHOICE = re.compile(_MARKED + r"[\s*.!。]*$", re.IGNORECASE)
# A dash or a point before a digit may belong to the number, so it does not go with what separates.
_BETWEEN = r"(?:[\s*_:：,，;；。|]|[.\-–—](?!\s*[0-9]))*"
CERTAIN = re.compile(
    _MARKED + _BETWEEN + r"(?:(?:certainty|confidence)\b" + _BETWEEN + r")?(.*?)[\s*_.!。]*$", re.IGNORECASE
)
CERTAINTY = re.compile(r"(?:\[\[\s*([0-9]+)\s*(?:%|/\s*100)?\s*\]\]|([0-9]+)\s*(?:%|/\s*100)?)")
MARKERS = (re.compile(r"\[\[\s*([ABC])\s*\]\]", re.IGNORECASE), re.compile(r"\[\[\s*([0-9]+)\s*\]\]"))
RATING = re.compile(
    r"^[\s*_#>`]*(?:(?:final )?(?:rating|score)\b)?[\s:*=\-–—.]*\[\[\s*(\d{1,3})\s*(?:/\s*10\s*)?\]\][\s*.!]*$",
    re.IGNORECASE,
)
HIGHEST = 10
MOST_CERTAIN = 100
NO_VERDICT = "no verdict in the last line"
TWO_MARKERS = "two different markers"
NO_CERTAINTY = "no certainty after the verdict"
NO_NUMBER = "a certainty that is no whole number"
OFF_THE_SCALE = "a certainty off the scale"


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


def parse_certain_choice(reply: str) -> CertainChoice:
    """A choice and its certainty: `[[A]] [[85]]` in the last line, or JSON with `verdict` and `certainty`.

    The certainty is a whole number from 1 to 100, in double brackets or without, and may stand in a line of its own
    below the choice. Raises `InvalidAnswer`, also for two different markers of either kind (see `one_marker`).
    """
    text = after_thinking(one_marker(reply)).strip()
    if text.startswith("{"):
        return CertainChoice(parse_choice(text), _certainty(_json(text).get("certainty")))
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    # Two lines are one where the last has no choice and the one before it nothing else.
    own = len(lines) < 2 or MARKERS[0].search(lines[-1]) or not CHOICE.match(lines[-2])
    matched = CERTAIN.match(" ".join(lines[-1:] if own else lines[-2:]))
    if matched is None:
        raise InvalidAnswer(NO_VERDICT)
    choice = parse_choice(f"[[{matched[1]}]]")
    number = CERTAINTY.fullmatch(matched[2])
    return CertainChoice(choice, _certainty((number[1] or number[2]) if number else matched[2]))


def one_marker(reply: str) -> str:
    """The reply, which must not weigh two verdicts, or two numbers, in marks of their own.

    Raises `InvalidAnswer` for `[[A]]` beside `[[B]]` wherever they stand after the thinking, and for JSON that has a
    key twice.
    """
    text = after_thinking(reply)
    if any(len({found.upper() for found in marker.findall(text)}) > 1 for marker in MARKERS):
        raise InvalidAnswer(TWO_MARKERS)
    if text.strip().startswith("{"):
        _json(text)
    return reply


def _certainty(said: object) -> int:
    """A certainty as a number, from what stands in its place. Raises `InvalidAnswer`."""
    if said is None or said == "":
        raise InvalidAnswer(NO_CERTAINTY)
    if isinstance(said, bool) or not re.fullmatch(r"-?[0-9]+", str(said)):
        raise InvalidAnswer(NO_NUMBER)
    digits = str(said)
    if len(digits) > len(str(MOST_CERTAIN)) or not 1 <= int(digits) <= MOST_CERTAIN:
        raise InvalidAnswer(OFF_THE_SCALE)
    return int(digits)


def _json(text: str) -> dict[str, Any]:
    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise InvalidAnswer(TWO_MARKERS)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except ValueError:
        raise InvalidAnswer(NO_VERDICT) from None
    return value if isinstance(value, dict) else {}


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
