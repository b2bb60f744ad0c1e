"""Several requests in a message: each keeps its key and its answer, and what holds for a request holds for a message.

And ledgers that are read a few answers at a time.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self

import pytest
from pluralbench_calls import (
    Answer,
    CallsError,
    Ledger,
    Limits,
    PackingBackend,
    Request,
    ask,
    working_ledger,
)
from skipping_clock import Clock

ONE_BY_ONE = Limits(concurrency=1)


def text_of(request: Request) -> str:
    return str(request.body["text"])


def requests_of(*texts: str, **fields: str | int) -> list[Request]:
    return [Request("translation", "here", "m", {"text": text}, **fields) for text in texts]  # type: ignore[arg-type]


def numbered(count: int) -> list[Request]:
    return requests_of(*(f"text {number}" for number in range(count)))


class Packing(PackingBackend):
    """A backend of messages of at most `size` requests, which `before` sees first; a token for each character.

    at_once: how many answers of a message come together, all where it is 0.
    sent: the texts that were answered together. most_at_once: how many messages were in flight.
    """

    def __init__(
        self,
        size: int = 3,
        *,
        concurrency: int | None = None,
        before: Callable[[list[str]], object] = lambda _: None,
        delay: float = 0.0,
        mixed: bool = False,
        at_once: int = 0,
    ) -> None:
        self.concurrency, self.at_once = concurrency, at_once
        self.strings, self.before, self.delay, self.mixed = size, before, delay, mixed
        self.sent: list[list[str]] = []
        self.entered = self.in_flight = self.most_at_once = 0

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        order = list(requests)
        if self.mixed:
            random.Random(len(order)).shuffle(order)
        return [order[start : start + self.strings] for start in range(0, len(order), self.strings)]

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    def size(self, request: Request) -> int:
        return len(text_of(request))

    async def send(self, request: Request) -> Answer:
        raise NotImplementedError(f"{request.key} was not packed")

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        self.in_flight += 1
        self.most_at_once = max(self.most_at_once, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
            for start in range(0, len(requests), self.at_once or len(requests)):
                part = requests[start : start + (self.at_once or len(requests))]
                texts = [text_of(request) for request in part]
                self.before(texts)
                self.sent.append(texts)
                yield [
                    Answer.to(request, "answer", f"re: {text_of(request)}", tokens=(self.size(request), 0))
                    for request in part
                ]
        finally:
            self.in_flight -= 1

    @property
    def texts(self) -> list[str]:
        """Every text that was sent."""
        return [text for message in self.sent for text in message]


def failing(*texts: str, error: Exception | None = None) -> Callable[[list[str]], None]:
    """A message that holds one of `texts` fails."""

    def before(message: list[str]) -> None:
        if {*message} & {*texts}:
            raise error or CallsError("The server is gone.")

    return before


@pytest.mark.parametrize("mixed", [False, True])
def test_each_request_has_its_own_key_and_answer(tmp_path: Path, mixed: bool) -> None:
    requests = requests_of("two", "one", "a 文字", "", "five", label="for a test")
    backend = Packing(2, mixed=mixed)
    with Ledger(tmp_path / "ledger") as ledger:
        answers = ask(requests, ledger, backend, limits=ONE_BY_ONE)
        assert ledger.find(request.key for request in requests) == {
            request.key: answer for request, answer in zip(requests, answers, strict=True)
        }
    assert [(answer.key, answer.text) for answer in answers] == [
        (request.key, f"re: {text_of(request)}") for request in requests
    ]
    assert {answer.label for answer in answers} == {"for a test"}
    assert [len(message) for message in backend.sent] == [2, 2, 1]
    assert backend.entered == 1


def test_a_ledger_holds_work_when_something_was_asked_for(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as ledger:
        ask(numbered(2), ledger, Packing())
        assert ledger.has_new_calls
    with working_ledger(tmp_path / "b") as ledger:
        ledger.add_from(tmp_path / "a")
        ask(numbered(2), ledger, Packing())
        assert not ledger.has_new_calls
    assert not (tmp_path / "b").exists()
    with working_ledger(tmp_path / "b") as ledger:
        ledger.add_from(tmp_path / "a")
        ask(numbered(3), ledger, Packing())
    with working_ledger(tmp_path / "b") as ledger:
        assert ledger.has_new_calls
        assert len(ledger) == 3
    assert (tmp_path / "b").exists()


def test_a_message_that_fails_keeps_the_others_recorded(tmp_path: Path) -> None:
    requests = numbered(9)
    sentence = r"^The server is gone\. 3 of 9 texts are recorded; rerun the same command to resume\.$"
    with Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError, match=sentence):
            ask(requests, ledger, Packing(before=failing("text 4")), limits=ONE_BY_ONE, label="texts")
        assert ledger.find(request.key for request in requests).keys() == {request.key for request in requests[:3]}
        backend = Packing()
        answers = ask(requests, ledger, backend, limits=ONE_BY_ONE)
    assert sorted(backend.texts) == [f"text {number}" for number in range(3, 9)]
    assert [answer.text for answer in answers] == [f"re: text {number}" for number in range(9)]


def test_a_rate_of_requests_is_one_of_messages(tmp_path: Path, clock: Clock) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ask(numbered(20), ledger, Packing(20), limits=Limits(requests_per_minute=10))
        assert clock.now == 0.0
        ask(numbered(60), ledger, Packing(20), limits=Limits(requests_per_minute=10))
        assert clock.now == pytest.approx(6.0, abs=0.1)
