"""Ask again until an answer is valid: the one policy for answers that do not parse or do not keep a limit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pluralbench_calls.ask import Limits, ask
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.records import TOO_LONG, Answer, Backend, Request

Item = TypeVar("Item")
Value = TypeVar("Value")

INCOMPLETE_REPLY = {
    "empty": "empty answer",
    "refusal": "refused",
    "content_filter": "stopped by a content filter",
    "length": "cut off at the token limit",
}
UNPARSED_REPLY = "longer than an answer may be"


class InvalidAnswer(Exception):
    """Raised by a parser: the answer cannot be used, for this reason; another draw may be."""


def strip_thinking(text: str) -> str:
    """What a reply says after the model's thinking. Raises `InvalidAnswer` for thinking that never ends."""
    if "<think>" in text and "</think>" not in text:
        raise InvalidAnswer("thinking without an answer")
    return text.rpartition("</think>")[2]


@dataclass(frozen=True)
class ParsedReply(Generic[Value]):
    """What came of an item: a value with the answer it was parsed from, or a reason why there is none.

    calls: the keys of all answers that were asked for, in their order; the last is that of `answer`.
    """

    value: Value | None
    answer: Answer
    reason: str
    calls: tuple[str, ...]

    @property
    def attempts(self) -> int:
        """How many answers were asked for."""
        return len(self.calls)


def ask_until_valid(
    items: Sequence[Item],
    request: Callable[[Item, int], Request],
    parse: Callable[[Item, str], Value],
    ledger: Ledger,
    backend: Backend,
    *,
    attempts: int,
    limits: Limits | None = None,
    label: str = "calls",
) -> list[ParsedReply[Value]]:
    """Ask for each item until `parse` takes the answer, at most `attempts` times; results in the items' order.

    request: the request for an item's attempt (0, 1, ...); it must differ by attempt, by its `sample` at least.
    parse: turns an answer's text into a value or raises `InvalidAnswer`. Refusals, length stops, content filters
    and empty answers never reach it. A request that the server rejects is not asked again: it would be again.
    """
    settled: dict[int, ParsedReply[Value]] = {}
    for attempt in range(attempts):
        waiting = [index for index in range(len(items)) if index not in settled or _may_retry(settled[index])]
        requests = [request(items[index], attempt) for index in waiting]
        # Each item that is asked again has been answered: what is rejected now is a single request's trouble.
        answers = ask(requests, ledger, backend, limits=limits, label=label, answered=attempt > 0)
        for index, answer in zip(waiting, answers, strict=True):
            before = settled[index].calls if index in settled else ()
            settled[index] = _settle(items[index], answer, parse, (*before, answer.key))
    return [settled[index] for index in range(len(items))]


def _may_retry(settled: ParsedReply[Value]) -> bool:
    return bool(settled.reason) and settled.answer.outcome != "error"


def _settle(
    item: Item, answer: Answer, parse: Callable[[Item, str], Value], calls: tuple[str, ...]
) -> ParsedReply[Value]:
    if answer.outcome == "error":
        return ParsedReply(None, answer, "rejected by the server", calls)
    if answer.outcome != "answer":
        too_long = answer.finish_reason == TOO_LONG
        return ParsedReply(None, answer, UNPARSED_REPLY if too_long else INCOMPLETE_REPLY[answer.outcome], calls)
    try:
        return ParsedReply(parse(item, answer.text), answer, "", calls)
    except InvalidAnswer as invalid:
        return ParsedReply(None, answer, str(invalid) or "invalid", calls)
