"""Parsing of verdicts, picks and ratings in a judge's reply.

There are two rules for the text after the model's thinking:

- "strict": the last line is the verdict alone, except for a label such as "Verdict:".
- "lenient": the marker in the last line with words, whatever surrounds it; if that line has no marker, the only marker
  of the reply. Different markers are invalid, and so are a marker in a sentence that contradicts one alone in a line
  above, and a denied one ("I don't think [[A]] wins"; see `denials`).

Every reply that is valid under "strict" gives the same verdict under "lenient". Full-width letters and brackets count
as their ASCII forms.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from pluralbench_calls.denials import is_denied, is_one_of_two
from pluralbench_calls.retry import InvalidAnswer, strip_thinking

Choice = Literal["A", "B"]
Verdict = Literal["A", "B", "C"]
"""A choice, or "C" for a tie if the judge may call both equal."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Rule = Literal["strict", "lenient"]
"""How a reply is parsed; see the module docstring."""
Reading = Literal["strict", "lenient", "legacy"]
"""A rule, or "legacy" for `legacy_choice`."""


class CertainChoice(NamedTuple):
    """A choice, and the judge's stated certainty from 1 to 100."""

    choice: Choice
    certainty: int


# Replies may be made to hang a parser: repeats that overlap are possessive, and the time is linear in the length.
# Under the strict rule the verdict is alone in the last line, so a marker that is only quoted or discussed is not one.
_VERDICT = (
    r"^[\s*_#>`]*+(?:(?:final )?(?:verdict|result|answer|choice)\b|(?:最终)?(?:结论|结果|判断))?[\s:：*=\-–—.]*+"
    r"\[\[\s*([ABC])\s*\]\]"
)
CHOICE = re.compile(_VERDICT + r"[\s*.!。]*$", re.IGNORECASE)
# A dash or a point before a digit may belong to the number, so it is not a separator.
_SEPARATOR = r"(?:[\s*_:：,，;；。|]|[.\-–—](?!\s*[0-9]))*"
CERTAIN = re.compile(
    _VERDICT
    + _SEPARATOR
    + r"(?:(?:certainty|confidence)\b"
    + _SEPARATOR
    + r")?((?:[\s*_.!。]*+[^\s*_.!。]++)*+)[\s*_.!。]*$",
    re.IGNORECASE,
)
CERTAINTY = re.compile(r"(?:\[\[\s*([0-9]+)\s*+(?:(?:%|/\s*100)\s*+)?\]\]|([0-9]+)\s*(?:%|/\s*100)?)")
MARKERS = (re.compile(r"\[\[\s*([ABC])\s*\]\]", re.IGNORECASE), re.compile(r"\[\[\s*([0-9]+)\s*\]\]"))
RATING = re.compile(
    r"^[\s*_#>`]*+(?:(?:final )?(?:rating|score)\b)?[\s:*=\-–—.]*+\[\[\s*(\d{1,3})\s*(?:/\s*10\s*)?\]\][\s*.!]*$",
    re.IGNORECASE,
)
PICK = re.compile(
    r"^[\s*_#>`]*+(?:(?:final )?(?:verdict|result|answer|choice|response|pick)\b)?[\s:*=\-–—.]*+"
    r"\[\[\s*(\d{1,4})\s*\]\][\s*.!]*$",
    re.IGNORECASE,
)
# For the lenient rule: a marker with words (not always a verdict, such as [[tie]]), or with a number.
WORD = re.compile(r"\[\[([^\[\]\d]*)\]\]")
NUMBER = re.compile(r"\[\[([^\[\]\d]*\d[^\[\]]*)\]\]")
# A line with a marker and at most a label, whatever it marks.
ALONE = re.compile(
    r"^[\s*_#>`]*+(?:(?:final )?(?:verdict|result|answer|choice|response|pick|rating|score)\b"
    r"|(?:最终)?(?:结论|结果|判断))?[\s:：*=\-–—.]*+(\[\[[^\[\]]*\]\])[\s*_`.!。]*$",
    re.IGNORECASE,
)
ASCII_FORMS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("【"): "[", ord("】"): "]"}
FENCED = re.compile(r"```\w*\s*(\{.*\})\s*```", re.DOTALL)
MAX_RATING = 10
MAX_CERTAINTY = 100
NO_VERDICT = "no verdict in the last line"
NO_RATING = "no rating in the last line"
NOWHERE = "no verdict"
TWO_MARKERS = "two different markers"
DENIED_MARKER = "a marker that is denied"
NO_CERTAINTY = "no certainty after the verdict"
NO_NUMBER = "a certainty that is no whole number"
OFF_THE_SCALE = "a certainty off the scale"


def parse_choice(reply: str, rule: Rule = "strict") -> Choice:
    """Parse a choice: `[[A]]` or `[[B]]`, or JSON with a `verdict`.

    Raises:
        InvalidAnswer: The reply has no verdict, or a tie.
    """
    verdict = parse_verdict(reply, rule)
    if verdict == "C":
        raise InvalidAnswer(NO_VERDICT if rule == "strict" else NOWHERE)
    return verdict


def parse_verdict(reply: str, rule: Rule = "strict") -> Verdict:
    """Parse a verdict: `[[A]]`, `[[B]]` or, for a tie, `[[C]]`, or JSON with a `verdict`.

    Raises:
        InvalidAnswer: The reply has no verdict.
    """
    text = _strict_marker(reply, CHOICE, "verdict") if rule == "strict" else _lenient_marker(reply, WORD, "verdict")
    for verdict in VERDICTS:
        if text is not None and text.upper() == verdict:
            return verdict
    raise InvalidAnswer(NO_VERDICT if rule == "strict" else NOWHERE)


def parse_rating(reply: str, rule: Rule = "strict") -> float:
    """Parse a rating: `[[1]]` to `[[10]]`, or JSON with a `rating`.

    Raises:
        InvalidAnswer: The reply has no rating, or one off the scale.
    """
    if rule == "strict":
        text = _strict_marker(reply, RATING, "rating")
    else:
        text = re.sub(r"(?<!\s)\s*/\s*10$", "", _lenient_marker(reply, NUMBER, "rating") or "")
    if text is None or not re.fullmatch(r"\d{1,3}", text):
        raise InvalidAnswer(NO_RATING if rule == "strict" else "no rating")
    if not 1 <= int(text) <= MAX_RATING:
        raise InvalidAnswer("a rating off the scale")
    return float(text)


def parse_pick(reply: str, responses: int, rule: Rule = "strict") -> int:
    """Parse the number of the response that a judge picks from a list: `[[1]]`, `[[2]]`, ..., or JSON with a `best`.

    Raises:
        InvalidAnswer: The reply has no number, several numbers, or one that no response has.
    """
    text = _strict_marker(reply, PICK, "best") if rule == "strict" else _lenient_marker(reply, NUMBER, "best")
    if text is None or not re.fullmatch(r"\d{1,4}", text):
        raise InvalidAnswer("no number in the last line" if rule == "strict" else "no number")
    if not 1 <= int(text) <= responses:
        raise InvalidAnswer("a number that no response has")
    return int(text)


def legacy_choice(reply: str) -> Choice | None:
    """Parse a choice like the original code of RewardBench and M-RewardBench: one with both markers counts as "A"."""
    return "A" if "[[A]]" in reply else "B" if "[[B]]" in reply else None


def legacy_score(reply: str, right: Choice) -> float:
    """Score a reply like M-RewardBench: 1 if it chooses `right`, 0 if the other, 0.5 if it cannot be parsed."""
    choice = legacy_choice(reply)
    return 0.5 if choice is None else float(choice == right)


def parse_with_all_rules(
    reply: str, parse: Callable[[str, Rule], Verdict] = parse_choice
) -> dict[Reading, Verdict | None]:
    """Parse a raw reply by each rule; None if a rule finds no verdict.

    `parse` is `parse_choice`, or `parse_verdict` if ties are allowed.
    """
    verdicts: dict[Reading, Verdict | None] = {}
    rules: tuple[Rule, ...] = ("strict", "lenient")
    for rule in rules:
        try:
            verdicts[rule] = parse(reply, rule)
        except InvalidAnswer:
            verdicts[rule] = None
    return {**verdicts, "legacy": legacy_choice(reply)}


def parse_certain_choice(reply: str, rule: Rule = "strict") -> CertainChoice:
    """Parse a choice and its certainty, an integer from 1 to 100: `[[A]] [[85]]`, or JSON.

    JSON has the keys `verdict` and `certainty`. Under the strict rule, the certainty may lack double brackets. It is in
    the last line with the choice, or in its own line below it. Two different choices or numbers in brackets make the
    reply invalid (see `require_single_marker`). Under the lenient rule, choice and certainty are markers.

    Raises:
        InvalidAnswer: The reply has no choice or no certainty.
    """
    if rule == "lenient":
        try:
            return parse_certain_choice(reply)
        except InvalidAnswer:
            choice = parse_choice(reply, rule)
            certainty = _lenient_marker(reply, NUMBER, "certainty")
            return CertainChoice(
                choice, _parse_certainty(certainty and re.sub(r"(?<!\s)\s*(?:%|/\s*100)$", "", certainty))
            )
    text = _reply_text(require_single_marker(reply))
    if text.startswith("{"):
        return CertainChoice(parse_choice(text), _parse_certainty(_parse_json(text).get("certainty")))
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    # The last two lines are joined if the last has no choice and the one before it has only a choice.
    is_one_line = len(lines) < 2 or MARKERS[0].search(lines[-1]) or not CHOICE.match(lines[-2])
    match = CERTAIN.match(" ".join(lines[-1:] if is_one_line else lines[-2:]))
    if match is None:
        raise InvalidAnswer(NO_VERDICT)
    choice = parse_choice(f"[[{match[1]}]]")
    number = CERTAINTY.fullmatch(match[2])
    return CertainChoice(choice, _parse_certainty((number[1] or number[2]) if number else match[2]))


def require_single_marker(reply: str) -> str:
    """Check that a reply has no two different choices or numbers in brackets, and return it.

    Raises:
        InvalidAnswer: The text after the thinking has both `[[A]]` and `[[B]]`, two different numbers, or JSON with a
            duplicate key.
    """
    text = _reply_text(reply)
    if any(len({value.upper() for value in marker.findall(text)}) > 1 for marker in MARKERS):
        raise InvalidAnswer(TWO_MARKERS)
    if text.startswith("{"):
        _parse_json(text)
    return reply


def _parse_certainty(value: object) -> int:
    if value is None or value == "":
        raise InvalidAnswer(NO_CERTAINTY)
    if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]+", str(value)):
        raise InvalidAnswer(NO_NUMBER)
    digits = str(value)
    if len(digits) > len(str(MAX_CERTAINTY)) or not 1 <= int(digits) <= MAX_CERTAINTY:
        raise InvalidAnswer(OFF_THE_SCALE)
    return int(digits)


def _parse_json(text: str) -> dict[str, Any]:
    def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise InvalidAnswer(TWO_MARKERS)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        raise InvalidAnswer(NO_VERDICT) from None
    return value if isinstance(value, dict) else {}


def _strict_marker(reply: str, marker: re.Pattern[str], key: str) -> str | None:
    text = _reply_text(reply)
    if text.startswith("{"):
        return _json_value(text, key)
    match = marker.match(text.rsplit("\n", 1)[-1].strip())
    return None if match is None else match[1]


def _lenient_marker(reply: str, marker: re.Pattern[str], key: str) -> str | None:
    """Return the marker of the last line with words, or if it has none, the only marker of the reply.

    A code fence or a horizontal rule below that line is ignored. JSON may be in a code fence.
    """
    text = _reply_text(reply)
    fenced = FENCED.fullmatch(text)
    if fenced or text.startswith("{"):
        return _json_value(fenced[1] if fenced else text, key)
    lines = [line for line in text.split("\n") if re.search(r"\w", line)]
    for part in (lines[-1:], lines):
        joined = "\n".join(part)
        found = [*marker.finditer(joined)]
        markers = {match[1].strip().upper() for match in found}
        if any(is_denied(joined, *match.span(1)) for match in found):
            raise InvalidAnswer(DENIED_MARKER)
        if any(is_one_of_two(joined, match.end(1)) for match in found):
            raise InvalidAnswer(TWO_MARKERS)
        if found and not ALONE.match(lines[-1]):
            alone = [match[1] for line in lines if (match := ALONE.match(line))]
            markers |= {match[1].strip().upper() for one in alone if (match := marker.fullmatch(one))}
        if len(markers) > 1:
            raise InvalidAnswer(TWO_MARKERS)
        if markers:
            return markers.pop()
    return None


def _reply_text(reply: str) -> str:
    """Return what a reply says, without thinking; full-width forms, as Chinese judges write them, become ASCII."""
    return strip_thinking(reply).strip().translate(ASCII_FORMS)


def _json_value(text: str, key: str) -> str | None:
    try:
        value = json.loads(text)[key]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
