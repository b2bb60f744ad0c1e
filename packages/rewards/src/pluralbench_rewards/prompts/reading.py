"""How a verdict or scores are read from a reply, as a prompt's file describes it.

Nothing unreadable becomes a verdict: a reply that does not say one thing raises `InvalidAnswer` with the reason.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pluralbench_calls.retry import InvalidAnswer, strip_thinking
from pluralbench_calls.verdicts import Verdict
from pluralbench_runs import FrozenModel
from pydantic import Field, model_validator

from pluralbench_rewards.prompts.finding import LETTERS, TWO_VERDICTS, ReplyText, Source

Meaning = Literal["A", "B", "tie"]

_NUMBER = re.compile(r"([+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15}))")
_AROUND = " \t\n*_`.。[]()"  # Markdown and brackets around the text of a verdict
_SEPARATOR = re.compile(r"[\s,;，、；]+")


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


def read_pair(reading: Reading, reply: str, begun: str = "") -> PairReading:
    """Read which of two responses a reply prefers.

    Some servers, such as llama.cpp, repeat the beginning of the reply, if it was sent (`begun`).

    Raises:
        InvalidAnswer: The reply names neither, both, or a number off the scale.
    """
    text = _text(reply, begun)
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


def read_score(reading: Reading, reply: str, begun: str = "") -> float:
    """Read the score of a single response. Raises `InvalidAnswer` without one, for several, or off the scale."""
    text = _text(reply, begun)
    if reading.scale is None:
        return float(_single(_meaning(reading, value) for value in reading.find(text)))
    [score] = _scores(reading, text, 1)
    return score


def read_list(reading: Reading, reply: str, count: int, begun: str = "") -> list[float]:
    """Read the scores of so many responses; without a scale 1 for the response that a reply picks, and 0 for others.

    Raises:
        InvalidAnswer: The reply does not have a score for each response, or picks none or two.
    """
    text = _text(reply, begun)
    if reading.scale is not None:
        return _scores(reading, text, count)
    picked = _single(_picked(value, count) for value in reading.find(text))
    return [float(place == picked) for place in range(count)]


def _text(reply: str, begun: str) -> ReplyText:
    own = reply.lstrip()
    own = own[len(begun.strip()) :] if begun and own.startswith(begun.strip()) else reply
    strip_thinking(own)  # refuses thinking without an end, also if the beginning ends its own
    text = strip_thinking(begun + own)
    return ReplyText(text, max(len(text) - len(own), 0))


def _scores(reading: Reading, text: ReplyText, count: int) -> list[float]:
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
