"""How a verdict or scores are read from a reply, as a prompt's file describes it.

Nothing unreadable becomes a verdict: a reply that does not say one thing raises `InvalidAnswer` with the reason.
"""

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pluralbench_calls.denials import is_denied, is_one_of_two
from pluralbench_calls.retry import InvalidAnswer, strip_thinking
from pluralbench_calls.verdicts import Verdict
from pluralbench_runs import FrozenModel, one_line
from pydantic import Field, PrivateAttr, field_validator, model_validator

from pluralbench_rewards.errors import RewardsError

Match = Literal["first", "last", "end", "only"]
Meaning = Literal["A", "B", "tie"]

MATCH_SECONDS = 1.0  # for one expression and reply; those in use need microseconds
NO_MATCH = "no verdict"
TWO_VERDICTS = "two different verdicts"
DENIED = "a verdict that is denied"
TOO_SLOW = f"the verdict takes more than {MATCH_SECONDS:g} s to find"
MAX_SLOW = 10  # replies on which a reading takes too long; more would take hours, also in a check of a run
MAX_EXPRESSION = 1_000  # characters, which also bounds how deep groups are nested
MAX_COMPILED = 500_000  # characters with every count written out; each takes some hundred bytes
PLACES = ("number", "letter")
"""Names in braces in an expression or a path that stand for each response: 1, 2, ... or A, B, ..."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLACE = re.compile(r"\{(number|letter)\}")
_COUNT = re.compile(r"\{([0-9]+)[,}]")
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|[+-]?[0-9]|&|P>)")  # (?R), (?1) and calls of named groups
_NUMBER = re.compile(r"([+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15}))")
_AROUND = " \t\n*_`.。[]()"  # Markdown and brackets around the text of a verdict
_SEPARATOR = re.compile(r"[\s,;，、；]+")
_BOX = r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
_IN_BOX = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}|~|\\(?:quad|qquad|[,;: ])")


class PairReading(NamedTuple):
    """What a reply says about two responses: the verdict ("C" is a tie), and their scores if it has any."""

    verdict: Verdict
    scores: tuple[float, float] | None = None


class Ranges(FrozenModel):
    """Ranges of a number that decides between two responses; a number in none of them is invalid."""

    first: tuple[float, float]
    second: tuple[float, float]
    tie: tuple[float, float] | None = None

    def verdict(self, number: float) -> Verdict:
        """Return the verdict of a number."""
        ranges: list[tuple[Verdict, tuple[float, float] | None]] = [
            ("A", self.first),
            ("B", self.second),
            ("C", self.tie),
        ]
        for verdict, limits in ranges:
            if limits is not None and limits[0] <= number <= limits[1]:
                return verdict
        raise InvalidAnswer("a number off the scale")

    @model_validator(mode="after")
    def _check(self) -> "Ranges":
        ranges = sorted(limits for limits in (self.first, self.second, self.tie) if limits is not None)
        if any(low > high for low, high in ranges):
            raise ValueError("a range must not end before it begins")
        if any(low <= high for (_, high), (low, _) in pairwise(ranges)):
            raise ValueError("the ranges overlap, so a number would mean two verdicts")
        return self


class Source(FrozenModel):
    """The part of a reply that holds a verdict or numbers: one of `regex`, `json_path` and `box`.

    Attributes:
        regex: Expression; its first group that matched is the text. `{number}` or `{letter}` in it makes one expression
            for each response.
        json_path: Keys in a JSON object of the reply, joined by dots; likewise with `{number}` or `{letter}`. One that
            ends with "?" may be missing.
        box: Read `\\boxed{...}`.
        after: Text that comes before, such as a heading: the first match after each occurrence is read, up to the next.
        match: Which match counts, if there are several. "end": the last, which must end the reply. "only": all, which
            must say the same.
    """

    regex: str | None = None
    json_path: str | None = None
    box: bool = False
    after: str = ""
    match: Match = "only"

    _slow: list[str] = PrivateAttr(default_factory=list)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, expression: str | None) -> str | None:
        if expression is not None:
            import regex  # only runs with a prompt of their own need it

            shown = one_line(expression, 80)
            copies = math.prod(max(int(count), 1) for count in _COUNT.findall(expression))
            if len(expression) > MAX_EXPRESSION or len(expression) * copies > MAX_COMPILED:
                raise ValueError(
                    f"the expression {shown!r} is too long (more than {MAX_EXPRESSION:,} characters), or has counts "
                    "that make it so; write * or + in place of a large count"
                )
            if _RECURSION.search(expression):
                raise ValueError(f"the expression {shown!r} calls a part of itself, which has no bound on its memory")
            try:
                compiled = regex.compile(_at(expression, 0))
                is_empty = compiled.search("", timeout=MATCH_SECONDS)
            except (regex.error, RecursionError, TimeoutError) as error:
                raise ValueError(f"the expression {shown!r} is not valid ({one_line(error, 80)})") from None
            if not compiled.groups:
                raise ValueError(f"the expression {shown!r} has no group; put parentheses around the verdict in it")
            if is_empty:
                raise ValueError(f"the expression {shown!r} matches an empty reply")
        return expression

    @model_validator(mode="after")
    def _one(self) -> "Source":
        if [self.regex is not None, self.json_path is not None, self.box].count(True) != 1:
            raise ValueError("exactly one of `regex`, `json_path` and `box` says where the verdict is")
        if self.after and self.match == "end":
            raise ValueError('`match = "end"` and `after` cannot be combined')
        return self

    @property
    def by_place(self) -> bool:
        """Whether there is one expression or path for each response."""
        return bool(_PLACE.search(self.regex or self.json_path or ""))

    def find(self, reply: str, place: int = 0) -> list[Any]:
        """Return what the matches hold, in order: texts, or values of JSON.

        Args:
            reply: The reply without thinking.
            place: The response, from 0, if there is one expression or path for each.

        Raises:
            InvalidAnswer: There is none, or matching takes too long.
            RewardsError: Matching took too long on `MAX_SLOW` replies.
        """
        try:
            return self._find(reply, place)
        except InvalidAnswer as error:
            self._slow.extend([reply] if str(error) == TOO_SLOW else [])
            if len(self._slow) >= MAX_SLOW:
                raise RewardsError(
                    f"The expression of the prompt, {one_line(self.regex or self.json_path, 80)!r}, needs more than "
                    f"{MATCH_SECONDS:g} s on each of {MAX_SLOW} replies; write it without repetitions in repetitions."
                ) from None
            raise

    def _find(self, reply: str, place: int) -> list[Any]:
        parts = reply.split(self.after)[1:] if self.after else [reply]
        found = [
            (part, match)
            for part in parts
            for match in (self._matches(part, place)[:1] if self.after else self._matches(part, place))
        ]
        if self.match == "end" and found and found[-1][0][found[-1][1].stop :].strip() not in {"", "```"}:
            found = []
        if not found:
            raise InvalidAnswer(NO_MATCH)
        counted = {"first": found[:1], "only": found}.get(self.match, found[-1:])
        if any(is_denied(part, match.start, match.end) for part, match in counted):
            raise InvalidAnswer(DENIED)
        if not self.by_place and any(is_one_of_two(part, match.end) for part, match in counted):
            raise InvalidAnswer(TWO_VERDICTS)
        return [match.value for _, match in counted]

    def _matches(self, text: str, place: int) -> list["_Match"]:
        if self.json_path is not None:
            return list(_json_matches(text, _at(self.json_path, place).split(".")))
        if self.box:
            matches = _regex_matches(_BOX, text)
            return [match._replace(value=_IN_BOX.sub(lambda one: one[1] or " ", match.value)) for match in matches]
        return _regex_matches(_at(self.regex or "", place), text)


class _Match(NamedTuple):
    """A match.

    Attributes:
        value: What it holds: a text, or a value of JSON.
        start: Where that begins in the text.
        end: Where it ends.
        stop: Where the match ends.
    """

    value: Any
    start: int
    end: int
    stop: int


class Reading(Source):
    """How a verdict is read: where it is (see `Source`), and what the text or the numbers there mean.

    Attributes:
        values: Meaning of each text: the response that is better (A, B) or a tie; of pointwise prompts, a number.
            Capital letters do not matter, nor do spaces, Markdown and brackets around a text.
        scale: Lowest and highest score of a response; a number outside makes the reply invalid. With a scale, a
            pairwise or listwise reply has a score for each response.
        ranges: For pairwise prompts, ranges of the one number of a reply that decides.
        ranking: For pairwise prompts with a scale, a second number that decides if the scores are equal.
    """

    values: dict[str, Meaning | float] = Field(default_factory=dict)
    scale: tuple[float, float] | None = None
    ranges: Ranges | None = None
    ranking: "Ranking | None" = None

    @model_validator(mode="after")
    def _one_meaning(self) -> "Reading":
        if [bool(self.values), self.scale is not None, self.ranges is not None].count(True) > 1:
            raise ValueError("only one of `values`, `scale` and `ranges` can say what the verdict means")
        folded = [_fold(text) for text in self.values]
        if len(set(folded)) < len(folded):
            raise ValueError("two of `values` differ only in capital letters or spaces")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError("`scale` must be the lowest and the highest score, such as [1, 10]")
        if self.ranking is not None and self.scale is None:
            raise ValueError("`ranking` breaks ties of scores, so it requires `scale`")
        return self


class Ranking(Source):
    """A number in the reply that decides if scores are equal (see `Source`)."""

    ranges: Ranges


def read_pair(reading: Reading, reply: str) -> PairReading:
    """Read which of two responses a reply prefers.

    Raises:
        InvalidAnswer: The reply names neither, both, or a number off the scale.
    """
    text = strip_thinking(reply)
    if reading.scale is not None:
        first, second = _scores(reading, text, 2)
        if first == second and reading.ranking is not None:
            number = _single(_number(value) for value in reading.ranking.find(text))
            return PairReading(reading.ranking.ranges.verdict(number), (first, second))
        verdict: Verdict = "A" if first > second else "B" if second > first else "C"
        return PairReading(verdict, (first, second))
    if reading.ranges is not None:
        return PairReading(_single(reading.ranges.verdict(_number(value)) for value in reading.find(text)))
    meaning = _single(_meaning(reading, value) for value in reading.find(text))
    return PairReading("C" if meaning == "tie" else meaning)


def read_score(reading: Reading, reply: str) -> float:
    """Read the score of a single response.

    Raises:
        InvalidAnswer: The reply has no score, several, or one off the scale.
    """
    text = strip_thinking(reply)
    if reading.scale is None:
        return float(_single(_meaning(reading, value) for value in reading.find(text)))
    [score] = _scores(reading, text, 1)
    return score


def read_list(reading: Reading, reply: str, count: int) -> list[float]:
    """Read the scores of so many responses; without a scale 1 for the response that a reply picks, and 0 for others.

    Raises:
        InvalidAnswer: The reply does not have a score for each response, or picks none or two.
    """
    text = strip_thinking(reply)
    if reading.scale is not None:
        return _scores(reading, text, count)
    picked = _single(_picked(value, count) for value in reading.find(text))
    return [float(place == picked) for place in range(count)]


def _scores(reading: Reading, text: str, count: int) -> list[float]:
    if reading.by_place:
        scores = [_single(_number(value) for value in reading.find(text, place)) for place in range(count)]
    else:
        scores = list(_single(tuple(_numbers(value)) for value in reading.find(text)))
    if len(scores) != count:
        raise InvalidAnswer(f"{len(scores)} scores for {count} response{'' if count == 1 else 's'}")
    low, high = reading.scale or (0.0, 0.0)
    if not all(low <= score <= high for score in scores):
        raise InvalidAnswer("a score off the scale")
    return scores


def _single(values: Iterable[Any]) -> Any:
    """Return the value that all matches say."""
    different = set(values)
    if len(different) != 1:
        raise InvalidAnswer(TWO_VERDICTS)
    return different.pop()


def _meaning(reading: Reading, value: object) -> Meaning | float:
    folded = _fold(str(value))
    for text, meaning in reading.values.items():
        if _fold(text) == folded and not isinstance(value, bool | list | dict):
            return meaning
    raise InvalidAnswer("a verdict that the prompt does not know")


def _picked(value: object, count: int) -> int:
    text = str(value).strip().upper()
    place = LETTERS.find(text) if len(text) == 1 and text.isalpha() else _number(value) - 1
    if place not in range(count):
        raise InvalidAnswer("a response that is not in the list")
    return int(place)


def _number(value: object) -> float:
    numbers = _numbers(value)
    if len(numbers) != 1:
        raise InvalidAnswer("several numbers" if numbers else "no number")
    return numbers[0]


def _numbers(value: object) -> list[float]:
    """Convert a number, a list, or a text such as "7, 9" or "[7, 9]" to numbers."""
    if isinstance(value, str):
        value = _SEPARATOR.split(re.sub(r"^\[(.*)\]$", r"\1", value.strip(" \n*")).replace("−", "-"))
    values = value if isinstance(value, list) else [value]
    numbers = []
    for one in values:
        match = None if isinstance(one, bool) else _NUMBER.fullmatch(str(one).strip())
        if match is None:
            raise InvalidAnswer("no number")
        numbers.append(float(match[1]))
    return numbers


def _fold(text: str) -> str:
    return " ".join(text.strip(_AROUND).split()).casefold()


def _at(expression: str, place: int) -> str:
    """Return an expression or path for one response."""
    names = {"number": str(place + 1), "letter": LETTERS[place % len(LETTERS)]}
    return _PLACE.sub(lambda match: names[match[1]], expression)


def _regex_matches(expression: str, text: str) -> list[_Match]:
    import regex

    def found(match: "regex.Match[str]") -> _Match:
        group = next((number for number, value in enumerate(match.groups(), 1) if value is not None), 0)
        start, end = match.span(group)
        return _Match(match[group] if group else "", start, end, match.end())

    compiled, begun = regex.compile(expression), time.thread_time()
    while True:
        try:
            return [found(match) for match in compiled.finditer(text, timeout=MATCH_SECONDS)]
        except TimeoutError:  # a clock of the wall: a machine that is busy or asleep is no slow expression
            if time.thread_time() - begun > MATCH_SECONDS / 2:
                raise InvalidAnswer(TOO_SLOW) from None


def _json_matches(text: str, path: Sequence[str]) -> Iterator[_Match]:
    """Yield the value at a path in each JSON object of a text that has it; a key with "?" may be missing."""
    keys = [(key.removesuffix("?"), key.endswith("?")) for key in path]

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if any([name for name, _ in pairs].count(key) > 1 for key, _ in keys):
            raise InvalidAnswer(TWO_VERDICTS)
        return dict(pairs)

    decoder, start, begun = json.JSONDecoder(strict=False, object_pairs_hook=unique), 0, time.thread_time()
    while (start := text.find("{", start)) >= 0:
        if time.thread_time() - begun > MATCH_SECONDS:
            raise InvalidAnswer(TOO_SLOW)
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start += 1
            continue
        for key, is_optional in keys:
            inner = value.get(key) if isinstance(value, dict) else None
            value = value if is_optional and not isinstance(inner, dict) else inner
        if value is not None:
            yield _Match(value, start, end, end)
        start = end
