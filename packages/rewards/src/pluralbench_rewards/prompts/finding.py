"""Where a verdict is in a reply, as a prompt's file describes it: an expression, a path in JSON, or a box."""

import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from pluralbench_calls.denials import is_denied, is_one_of_two
from pluralbench_calls.retry import InvalidAnswer
from pluralbench_runs import FrozenModel, one_line
from pydantic import PrivateAttr, field_validator, model_validator

from pluralbench_rewards.errors import RewardsError

Match = Literal["first", "last", "end", "only"]

MATCH_SECONDS = 1.0  # for one expression and reply; those in use need microseconds
NO_MATCH = "no verdict"
TWO_VERDICTS = "two different verdicts"
DENIED = "a verdict that is denied"
TOO_SLOW = f"the verdict takes more than {MATCH_SECONDS:g} s to find"
MAX_SLOW = 10  # replies on which a reading takes too long; more would take hours, also in a check of a run
MAX_EXPRESSION = 1_000  # characters, which also bounds how deep groups are nested
MAX_COMPILED = 500_000  # characters with every count written out; each takes some hundred bytes
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLACE = re.compile(r"\{(number|letter)\}")  # stands for each response: 1, 2, ... or A, B, ...
_COUNT = re.compile(r"\{([0-9]+)[,}]")
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|[+-]?[0-9]|&|P>)")  # (?R), (?1) and calls of named groups
_BOX = r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
_IN_BOX = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}|~|\\(?:quad|qquad|[,;: ])")


class ReplyText(NamedTuple):
    """A reply without thinking; its verdict ends behind `begin`, where the beginning that was sent ends."""

    text: str
    begin: int = 0


class _Match(NamedTuple):
    """A match: what it holds (a text, or a value of JSON), from where to where, and where the match ends."""

    value: Any
    start: int
    end: int
    stop: int


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

            shown = one_line(expression, 60)
            copies = math.prod(max(int(count), 1) for count in _COUNT.findall(expression))
            if len(expression) > MAX_EXPRESSION or len(expression) * copies > MAX_COMPILED:
                raise ValueError(f"the expression {shown!r} is too long, or its counts are too large; write * or +")
            if _RECURSION.search(expression):
                raise ValueError(f"the expression {shown!r} calls a part of itself, which needs unbounded memory")
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

    def find(self, reply: ReplyText, place: int = 0) -> list[Any]:
        """Return what the matches hold, in order: texts, or values of JSON.

        `place` is the response, from 0, if there is one expression or path for each.

        Raises:
            InvalidAnswer: There is none, one is denied, or matching takes too long.
            RewardsError: Matching took too long on `MAX_SLOW` replies.
        """
        try:
            return self._find(reply, place)
        except InvalidAnswer as error:
            self._slow.extend([reply.text] if str(error) == TOO_SLOW else [])
            if len(self._slow) >= MAX_SLOW:
                raise RewardsError(
                    f"The expression of the prompt, {one_line(self.regex or self.json_path, 80)!r}, needs more than "
                    f"{MATCH_SECONDS:g} s on each of {MAX_SLOW} replies; write it without repetitions in repetitions."
                ) from None
            raise

    def _find(self, reply: ReplyText, place: int) -> list[Any]:
        found: list[tuple[str, _Match]] = []
        begin = reply.begin
        for number, part in enumerate(reply.text.split(self.after) if self.after else [reply.text]):
            if number or not self.after:
                matches = (match for match in self._matches(part, place) if match.stop > begin)
                found += [(part, match) for match in islice(matches, 1 if self.after else None)]
            begin -= len(part) + len(self.after)
        if self.match == "end" and found and found[-1][0][found[-1][1].stop :].strip() not in {"", "```"}:
            found = []
        if not found:
            raise InvalidAnswer(NO_MATCH)
        counted = {"first": found[:1], "only": found}.get(self.match, found[-1:])
        if any(is_denied(part, match.start, match.end) for part, match in counted):
            raise InvalidAnswer(DENIED if len({str(match.value) for _, match in counted}) == 1 else TWO_VERDICTS)
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


def _at(expression: str, place: int) -> str:
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
