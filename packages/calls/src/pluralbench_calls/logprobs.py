"""The probability of a verdict, from the logprobs of the token that says it.

For each token of a reply, a server sends the likeliest tokens in its place. A ledger keeps those of labels only: tokens
of one letter or number, such as `A`, ` B` or `[[7`. The token of the verdict is found after the fact. It is the label
that gives another verdict of the same reply if it is replaced by another one, so it needs no knowledge of the reply's
form, and thinking or reasons that name an answer have no effect.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any, Generic, TypeVar

from pluralbench_runs import FrozenModel, one_line
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pluralbench_calls.errors import LedgerError

Value = TypeVar("Value")

TOP = 20  # tokens in place of each: the maximum of OpenAI and of vLLM's defaults
FIELDS = {"logprobs": True, "top_logprobs": TOP}
"""Fields of a request for logprobs."""
MAX_LABELS = 100  # of one reply, the last ones
END_TOKENS = 2  # at most, of a turn or a text, which are not part of the reply
DIGITS = 6  # after the point of a recorded logprob
ROUNDING = 1e-3  # by which the logarithm of a probability may exceed 0
LABEL = re.compile(rb"[^0-9A-Za-z]*([A-Za-z]|[0-9]{1,3})[^0-9A-Za-z]*")
WORD = re.compile(rb"[0-9A-Za-z]")
KINDS = (
    (re.compile("[A-Z]"), ("A", "B", "C")),
    (re.compile("[a-z]"), ("a", "b", "c")),
    (re.compile("[0-9]+"), tuple(map(str, range(1, 11)))),
)
"""Kinds of labels, letters before numbers, with those that a verdict may be besides those of the likeliest tokens."""


Logprob = Annotated[float, Field(le=ROUNDING, allow_inf_nan=False)]


class Label(FrozenModel):
    """A label in a reply.

    Attributes:
        at: Its place in the text of the reply, in characters.
        top: Natural logarithm of the probability of each label among the likeliest tokens in its place.
        least: That of the least likely of these tokens, labels or not. Any other label is at most as likely.
    """

    at: Annotated[int, Field(ge=0)]
    top: dict[str, Logprob]
    least: Logprob


LABELS = TypeAdapter(list[Label], config=ConfigDict(defer_build=True))


@dataclass(frozen=True)
class SoftVerdict(Generic[Value]):
    """The verdicts that the token of a verdict could have given.

    Attributes:
        values: The verdicts.
        probabilities: Probability of each, over all tokens; they add up to less than 1.
        bounded: Whether a verdict is not among the likeliest tokens, so that its probability is an upper bound.
    """

    values: tuple[Value, ...]
    probabilities: tuple[float, ...]
    bounded: bool


def record_labels(content: Any, text: str) -> str:
    """Return the labels of a reply as JSON, for a ledger; "" if the server sent no logprobs.

    Args:
        content: List of tokens with `token`, `bytes`, `logprob` and `top_logprobs`, as objects or mappings.
        text: Text of the reply. Tokens that are not in it, such as those of the thinking, have no labels.
    """
    tokens = content if isinstance(content, list) else []
    if not any(_field(token, "top_logprobs") for token in tokens):
        return ""
    return LABELS.dump_json([*_labels(tokens, text)][-MAX_LABELS:]).decode()


def _labels(tokens: Sequence[Any], text: str) -> Iterator[Label]:
    encoded = text.rstrip().encode(errors="replace")
    written = [_bytes(token) for token in tokens]
    place = len(encoded) - _end(written, encoded)
    first = len(encoded) - _shared(b"".join(written)[: len(encoded) - place], encoded)
    for token, own in zip(tokens, written, strict=True):
        match = LABEL.fullmatch(own)
        if match is not None:
            start, end = place + match.start(1), place + match.end(1)
            around = encoded[max(start - 1, 0) : start] + encoded[end : end + 1]
            top = _top(token)
            if top and first <= start and end <= len(encoded) and not WORD.search(around):
                least = min(top.values())
                at = len(encoded[:start].decode(errors="replace"))
                sums = _sums(top | {own: top.get(own, _logprob(token))})
                yield Label(at=at, top=sums, least=round(least, DIGITS))
        place += len(own)


def _end(written: Sequence[bytes], encoded: bytes) -> int:
    """Return the number of bytes of the tokens up to the end of the text, which tokens of the turn's end may follow."""
    joined = b"".join(written)
    ends = [len(b"".join(written[: len(written) - dropped]).rstrip()) for dropped in range(END_TOKENS + 1)]
    return max(ends, key=lambda end: _shared(joined[:end], encoded))


def _shared(first: bytes, second: bytes) -> int:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _top(token: Any) -> dict[bytes, float]:
    top = _field(token, "top_logprobs")
    logprobs = {_bytes(one): _logprob(one) for one in top} if isinstance(top, list) else {}
    return {own: value for own, value in logprobs.items() if value is not None}


def _sums(top: Mapping[bytes, float | None]) -> dict[str, float]:
    """Add up the probabilities of tokens with the same label, such as `A` and ` A`."""
    sums: dict[str, float] = {}
    for own, logprob in top.items():
        match = LABEL.fullmatch(own)
        if match is not None and logprob is not None:
            name = match[1].decode()
            sums[name] = sums.get(name, 0.0) + math.exp(logprob)
    return {name: round(min(math.log(value), 0.0), DIGITS) for name, value in sums.items() if value > 0}


def soft_verdict(
    text: str, labels: str, parse: Callable[[str], Value], failure: type[Exception]
) -> SoftVerdict[Value] | None:
    """Return the probabilities of the verdicts of a reply; None if no single label decides it.

    `parse` raises `failure` for a text without a verdict.

    Raises:
        LedgerError: The labels are not from `record_labels`.
    """
    try:
        every = LABELS.validate_json(labels or "[]")
    except ValidationError as error:
        raise LedgerError(f"A call of the ledger has logprobs of another form: {one_line(error, 80)}.") from None
    for kind, others in KINDS:
        found = [
            _verdicts(text, label, match.end(), others, parse, failure)
            for label in every
            if (match := kind.match(text, label.at))
        ]
        deciding = [one for one in found if one is not None]
        if deciding:
            return deciding[0] if len(deciding) == 1 else None
    return None


def _verdicts(
    text: str, label: Label, end: int, others: Sequence[str], parse: Callable[[str], Value], failure: type[Exception]
) -> SoftVerdict[Value] | None:
    """Return the verdicts of a reply with other labels in the place of one; None if they are all the same."""
    values: list[Value] = []
    sums: list[float] = []
    absent: list[int] = []
    for name in dict.fromkeys([*label.top, *others]):
        try:
            value = parse(text[: label.at] + name + text[end:])
        except failure:
            continue
        if value not in values:
            values, sums, absent = [*values, value], [*sums, 0.0], [*absent, 0]
        place = values.index(value)
        if name in label.top:
            sums[place] += math.exp(label.top[name])
        else:
            absent[place] += 1
    if len(values) < 2:
        return None
    bound = math.exp(label.least)
    probabilities = [own or bound * count for own, count in zip(sums, absent, strict=True)]
    return SoftVerdict(tuple(values), tuple(probabilities), bounded=0.0 in sums)


def _field(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else getattr(entry, name, None)


def _bytes(token: Any) -> bytes:
    own = _field(token, "bytes")
    if isinstance(own, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in own):
        return bytes(own)
    return str(_field(token, "token") or "").encode(errors="replace")


def _logprob(token: Any) -> float | None:
    value = _field(token, "logprob")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and value <= ROUNDING else None
