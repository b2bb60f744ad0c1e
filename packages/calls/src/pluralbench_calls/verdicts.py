"""What a judge's reply says: the one place where verdicts and ratings are parsed.

Two rules read a reply, after the model's thinking:

- "strict": the last line is the verdict and nothing else, but for a label such as "Verdict:".
- "lenient": what the markers of the closing line say, whatever words stand around them; where the closing line has
  none, what all markers of the reply say. Markers that differ say nothing, and neither does one that is denied
  ("not [[A]]").

What strict reads, lenient reads too, and the same. It trusts that a judge which writes one marker at the end, or one
alone in all its reply, gives its verdict with it.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from pluralbench_calls.retry import InvalidAnswer, strip_thinking

Choice = Literal["A", "B"]
Verdict = Literal["A", "B", "C"]
"""A choice, or "C" where a judge may call both equal."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Rule = Literal["strict", "lenient"]
"""How a reply is read; see the top of this module."""
Reading = Literal["strict", "lenient", "legacy"]
"""A rule, or `legacy_choice`."""


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
# For the lenient rule: a marker of words (which may be no verdict, as [[tie]] is none) or of a number.
WORD = re.compile(r"\[\[([^\[\]\d]*)\]\]")
NUMBER = re.compile(r"\[\[([^\[\]\d]*\d[^\[\]]*)\]\]")
DENIED = re.compile(r"""(?:\bnot|n't|≠|!=|❌|~~|不是|并非|而非)[\s*_"'“‘`]*\[\[""", re.IGNORECASE)
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
    """The response that a reply chooses: `[[A]]` or `[[B]]`, or JSON with a `verdict`.

    Raises `InvalidAnswer`, also for a tie.
    """
    verdict = parse_verdict(reply, rule)
    if verdict == "C":
        raise InvalidAnswer(NO_VERDICT if rule == "strict" else NOWHERE)
    return verdict


def parse_verdict(reply: str, rule: Rule = "strict") -> Verdict:
    """What a reply decides: `[[A]]`, `[[B]]` or, for a tie, `[[C]]`, or JSON with a `verdict`.

    Raises `InvalidAnswer`.
    """
    said = _said(reply, CHOICE, "verdict") if rule == "strict" else _marked(reply, WORD, "verdict")
    for verdict in VERDICTS:
        if said is not None and said.upper() == verdict:
            return verdict
    raise InvalidAnswer(NO_VERDICT if rule == "strict" else NOWHERE)


def parse_rating(reply: str, rule: Rule = "strict") -> float:
    """The rating in a reply: `[[1]]` to `[[10]]`, or JSON with a `rating`. Raises `InvalidAnswer`."""
    if rule == "strict":
        said = _said(reply, RATING, "rating")
    else:
        said = re.sub(r"\s*/\s*10$", "", _marked(reply, NUMBER, "rating") or "")
    if said is None or not re.fullmatch(r"\d{1,3}", said):
        raise InvalidAnswer(NO_RATING if rule == "strict" else "no rating")
    if not 1 <= int(said) <= MAX_RATING:
        raise InvalidAnswer("a rating off the scale")
    return float(said)


def legacy_choice(reply: str) -> Choice | None:
    """How the judges of RewardBench and M-RewardBench are read by their authors' code.

    `[[A]]` anywhere in the reply, else `[[B]]` anywhere, else None: a reply that weighs both counts as A.
    """
    return "A" if "[[A]]" in reply else "B" if "[[B]]" in reply else None


def legacy_score(reply: str, right: Choice) -> float:
    """The points that M-RewardBench gives for a reply where `right` is better: 1, 0, or 0.5 if it is unreadable."""
    said = legacy_choice(reply)
    return 0.5 if said is None else float(said == right)


def parse_with_all_rules(
    reply: str, parse: Callable[[str, Rule], Verdict] = parse_choice
) -> dict[Reading, Verdict | None]:
    """How each rule reads a raw reply; None where it cannot. parse: `parse_verdict` where ties are allowed."""
    read: dict[Reading, Verdict | None] = {}
    rules: tuple[Rule, ...] = ("strict", "lenient")
    for rule in rules:
        try:
            read[rule] = parse(reply, rule)
        except InvalidAnswer:
            read[rule] = None
    return {**read, "legacy": legacy_choice(reply)}


def parse_certain_choice(reply: str, rule: Rule = "strict") -> CertainChoice:
    """A choice and its certainty: `[[A]] [[85]]`, or JSON with `verdict` and `certainty`.

    The certainty is a whole number from 1 to 100. By the strict rule it stands in double brackets or without, in the
    last line or in one of its own below the choice, and two different markers of either kind anywhere make the reply
    invalid (see `require_single_marker`). By the lenient rule it is a marker, and so is the choice.

    Raises `InvalidAnswer`.
    """
    if rule == "lenient":
        try:
            return parse_certain_choice(reply)
        except InvalidAnswer:
            choice = parse_choice(reply, rule)
            certainty = _marked(reply, NUMBER, "certainty")
            return CertainChoice(choice, _certainty(certainty and re.sub(r"\s*(?:%|/\s*100)$", "", certainty)))
    text = strip_thinking(require_single_marker(reply)).strip()
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


def require_single_marker(reply: str) -> str:
    """The reply, which must not weigh two verdicts, or two numbers, in marks of their own.

    Raises `InvalidAnswer` for `[[A]]` beside `[[B]]` wherever they stand after the thinking, and for JSON that has a
    key twice.
    """
    text = strip_thinking(reply)
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
    if len(digits) > len(str(MAX_CERTAINTY)) or not 1 <= int(digits) <= MAX_CERTAINTY:
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
    text = strip_thinking(reply).strip()
    if text.startswith("{"):
        return _value(text, key)
    matched = marker.match(text.rsplit("\n", 1)[-1].strip())
    return None if matched is None else matched[1]


def _marked(reply: str, marker: re.Pattern[str], key: str) -> str | None:
    """What the markers of the closing line say, or, where it has none, those of the whole reply.

    The closing line is the last one with a word in it, so a fence or a rule below it does no harm. JSON may be fenced.
    """
    text = strip_thinking(reply).strip()
    fenced = FENCED.fullmatch(text)
    if fenced or text.startswith("{"):
        return _value(fenced[1] if fenced else text, key)
    lines = [line for line in text.split("\n") if re.search(r"\w", line)]
    for part in (lines[-1:], lines):
        shown = "\n".join(part)
        found = {str(said).strip().upper() for said in marker.findall(shown)}
        if found and DENIED.search(shown):
            raise InvalidAnswer(DENIED_MARKER)
        if len(found) > 1:
            raise InvalidAnswer(TWO_MARKERS)
        if found:
            return found.pop()
    return None


def _value(text: str, key: str) -> str | None:
    try:
        value = json.loads(text)[key]
    except (ValueError, KeyError, TypeError):
        return None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
