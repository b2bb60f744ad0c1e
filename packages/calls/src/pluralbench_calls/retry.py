"""Retry requests until their answers can be parsed."""

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
    """A parser cannot use an answer, for the reason in the message. Another sample may be valid."""


def strip_thinking(text: str) -> str:
    """Remove the model's thinking from a reply. Raises `InvalidAnswer` if the thinking does not end."""
    if "<think>" in text and "</think>" not in text:
        raise InvalidAnswer("thinking without an answer")
    return text.rpartition("</think>")[2]


@dataclass(frozen=True)
class ParsedReply(Generic[Value]):
    """The result of an item: a value and its answer, or the reason why there is no value.

    Attributes:
        value: The parsed value; None if no answer was valid.
        answer: The last answer.
        reason: Why there is no value; "" if there is one.
        calls: Keys of all answers in the order of the attempts.
    """

    value: Value | None
    answer: Answer
    reason: str
    calls: tuple[str, ...]

    @property
    def attempts(self) -> int:
        """The number of attempts."""
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
    """Send a request for each item until its answer can be parsed, at most `attempts` times.

    A request that the server rejects is not sent again.

    Args:
        items: The items.
        request: Makes the request of an item and an attempt (0, 1, ...). Requests must differ by attempt, at least in
            `sample`.
        parse: Turns the text of an answer into a value, or raises `InvalidAnswer`. It does not get refusals, truncated,
            filtered or empty answers, which count as invalid.
        ledger: Where answers are looked up and recorded.
        backend: Answers the requests that are not in the ledger.
        attempts: Maximum number of attempts for each item.
        limits: Rates and cost. Default: `Limits()`.
        label: Name of the requests in messages, in the plural.

    Returns:
        The results in the order of `items`.
    """
    replies: dict[int, ParsedReply[Value]] = {}
    for attempt in range(attempts):
        pending = [index for index in range(len(items)) if index not in replies or _may_retry(replies[index])]
        requests = [request(items[index], attempt) for index in pending]
        # Every item that is retried got an answer before, so a rejection now concerns only one request.
        answers = ask(requests, ledger, backend, limits=limits, label=label, answered=attempt > 0)
        for index, answer in zip(pending, answers, strict=True):
            calls = replies[index].calls if index in replies else ()
            replies[index] = _parse_answer(items[index], answer, parse, (*calls, answer.key))
    return [replies[index] for index in range(len(items))]


def _may_retry(reply: ParsedReply[Value]) -> bool:
    return bool(reply.reason) and reply.answer.outcome != "error"


def _parse_answer(
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
