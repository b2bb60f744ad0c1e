"""Retry requests until their answers can be parsed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pluralbench_runs import one_line

from pluralbench_calls.ask import FirstReplies, ask
from pluralbench_calls.errors import PermanentError
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.limits import Limits
from pluralbench_calls.logprobs import SoftVerdict, soft_verdict
from pluralbench_calls.records import NOT_ANSWERED, PROMPT_TOO_LONG, TOO_LONG, Answer, Backend, Request

Item = TypeVar("Item")
Value = TypeVar("Value")

INCOMPLETE_REPLY = {
    "empty": "empty answer",
    "refusal": "refused",
    "content_filter": "stopped by a content filter",
    "length": "cut off at the token limit",
}
ERRORS = {PROMPT_TOO_LONG: PROMPT_TOO_LONG, NOT_ANSWERED: "not answered by the server"}
UNPARSED_REPLY = "longer than an answer may be"
BROKEN_REPLY = "broken off by the server"
UNENDED = "thinking without an answer"
QUOTED_CHARACTERS = 120  # from the end of a reply, where a verdict belongs
KEEP_TO_FORM = "choose a model that keeps to the form of the reply"


class InvalidAnswer(Exception):
    """A parser cannot use an answer, for the reason in the message. Another sample may be valid."""


THINKING = (
    *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>", "<|channel|>final<|message|>"),  # gpt-oss
    ("<|channel>", "<channel|>"),  # Gemma 4
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Cohere
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
"""Marks before and after a model's thinking, if the server leaves it in the text. Some templates write the first."""
_UNMARKED = re.compile(r"analysis(?=[A-Z\"'])")  # gpt-oss, if the server drops its marks


def strip_thinking(text: str) -> str:
    """Remove the model's thinking from a reply. Raises `InvalidAnswer` if thinking does not end."""
    for begin, end in THINKING:
        text = text.rpartition(end)[2]
        if begin in text:
            raise InvalidAnswer(UNENDED)
    if _UNMARKED.match(text):
        _, ended, text = text.rpartition("assistantfinal")
        if not ended:
            raise InvalidAnswer(UNENDED)
    return text


def answer_text(reply: str) -> str:
    """Return a reply without the model's thinking. Raises `InvalidAnswer` if nothing is left."""
    text = strip_thinking(reply).strip()
    if not text:
        raise InvalidAnswer(INCOMPLETE_REPLY["empty"])
    return text


@dataclass(frozen=True)
class ParsedReply(Generic[Value]):
    """The result of an item: a value and its answer, or the reason why there is no value.

    Attributes:
        value: The parsed value; None if no answer was valid.
        answer: The last answer.
        reason: Why there is no value; "" if there is one.
        calls: Keys of all answers in the order of the attempts.
        soft: Probabilities of the values that the token of the verdict could have given, if the answer has logprobs;
            None also if no single token decides the value.
    """

    value: Value | None
    answer: Answer
    reason: str
    calls: tuple[str, ...]
    soft: SoftVerdict[Value] | None = None

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
    fix: str = KEEP_TO_FORM,
) -> list[ParsedReply[Value]]:
    """Send a request for each item until its answer can be parsed, at most `attempts` times, as `ask` does.

    A request that the server rejects is not sent again. `request` makes the request of an item and an attempt (0, 1,
    ...), which must differ by attempt, at least in `sample`. `parse` turns the text of an answer into a value, or
    raises `InvalidAnswer`; refusals and truncated, filtered or empty answers are invalid without it. `fix` says in
    messages what to do if no reply has the required form.

    Returns:
        The results in the order of `items`.

    Raises:
        PermanentError: None of the first answers can be parsed, and more would be requested; see `FirstReplies`.
    """
    replies: dict[int, ParsedReply[Value]] = {}
    for attempt in range(attempts):
        final = {index for index, one in replies.items() if not one.reason or one.answer.outcome == "error"}
        pending = [index for index in range(len(items)) if index not in final]
        requests = [request(items[index], attempt) for index in pending]
        if attempt == 0:
            by_key = dict(zip((one.key for one in requests), items, strict=True))
            first = _first_replies(by_key, parse, label, fix, retried=attempts > 1)
            answers = ask(requests, ledger, backend, limits=limits, label=label, first_replies=first)
        else:  # every item got an answer before, so a rejection now concerns only one request
            answers = ask(requests, ledger, backend, limits=limits, label=label, answered=True)
        for index, answer in zip(pending, answers, strict=True):
            calls = replies[index].calls if index in replies else ()
            replies[index] = _parse_answer(items[index], answer, parse, (*calls, answer.key))
    return [replies[index] for index in range(len(items))]


def _first_replies(
    items: Mapping[str, Item], parse: Callable[[Item, str], Value], label: str, fix: str, *, retried: bool
) -> FirstReplies:
    """Return what stops if the first answers do not have the form. `retried`: more is requested whatever they are."""

    def read(answer: Answer) -> ParsedReply[Value]:
        return _parse_answer(items[answer.key], answer, parse, ())

    def stop(answers: Sequence[Answer]) -> None:
        if not (retried or len(answers) < len(items)):
            return
        replies = [*map(read, answers)]
        first = next((reply for reply in replies if reply.answer.outcome == "answer"), replies[0])
        text = one_line(first.answer.text[-QUOTED_CHARACTERS:], QUOTED_CHARACTERS)
        cure = "increase `max_tokens=...`" if first.answer.is_at_limit else fix
        raise PermanentError(
            f"None of the first {len(replies):,} {label} by {first.answer.model or 'this model'} can be read "
            f"({first.reason}; one reply ends: {text!r}); {cure}."
        )

    return FirstReplies(lambda answer: not read(answer).reason, stop)


def _parse_answer(
    item: Item, answer: Answer, parse: Callable[[Item, str], Value], calls: tuple[str, ...]
) -> ParsedReply[Value]:
    if answer.outcome == "error":
        return ParsedReply(None, answer, ERRORS.get(answer.finish_reason, "rejected by the server"), calls)
    if answer.outcome != "answer":
        if answer.outcome == "length" and not answer.is_at_limit:
            return ParsedReply(
                None, answer, UNPARSED_REPLY if answer.finish_reason == TOO_LONG else BROKEN_REPLY, calls
            )
        return ParsedReply(None, answer, INCOMPLETE_REPLY[answer.outcome], calls)
    try:
        value = parse(item, answer.text)
    except InvalidAnswer as invalid:
        return ParsedReply(None, answer, str(invalid) or "invalid", calls)
    soft = None
    if answer.logprobs:
        soft = soft_verdict(answer.text, answer.logprobs, lambda text: parse(item, text), InvalidAnswer)
    return ParsedReply(value, answer, "", calls, soft)
