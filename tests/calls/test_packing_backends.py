"""Several requests in a message: each keeps its key and its answer, and what holds for a request holds for a message.

And ledgers that are read a few answers at a time.
"""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self

import pluralbench_calls.ledger
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import (
    Answer,
    CallsError,
    Ledger,
    Limits,
    PackingBackend,
    Price,
    Request,
    ask,
    read_ledger,
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


CENT = Price(input=10_000.0)  # one cent for each character


def made(key: str, text: str, tokens: int) -> Answer:
    return Answer(key, "translation", "here", "", "answer", text, "m", "", tokens, 1, "2026-01-01T00:00:00+00:00")


def test_packing_is_no_part_of_what_was_asked(tmp_path: Path) -> None:
    requests = numbered(10)
    keys = []
    for size in (1, 3, 10):
        with Ledger(tmp_path / f"{size}") as ledger:
            ask(requests, ledger, Packing(size, mixed=size == 3))
            keys.append(read_ledger(tmp_path / f"{size}")["key"].to_list())
            again = Packing(7)
            ask(requests[::-1], ledger, again)
            assert (again.sent, again.entered) == ([], 0)
    assert keys[0] == keys[1] == keys[2] == sorted(request.key for request in requests)


def test_what_came_of_a_message_before_it_failed_is_recorded(tmp_path: Path) -> None:
    requests = numbered(8)
    with Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError, match=r"^The server is gone\. 4 of 8 calls are recorded"):
            ask(requests, ledger, Packing(8, before=failing("text 5"), at_once=2), limits=ONE_BY_ONE)
        assert ledger.find(request.key for request in requests).keys() == {request.key for request in requests[:4]}
        backend = Packing(8, at_once=3)
        answers = ask(requests, ledger, backend)
    assert backend.sent == [["text 4", "text 5", "text 6"], ["text 7"]]
    assert [answer.text for answer in answers] == [f"re: text {number}" for number in range(8)]


def test_a_message_that_costs_too_much_is_not_sent(tmp_path: Path) -> None:
    requests = requests_of(*(f"{number:020}" for number in range(10)))
    with Ledger(tmp_path / "ledger") as ledger:
        backend = Packing(5)
        with pytest.raises(CallsError, match=r"\$0\.0000 is spent, and the next call could cost \$1\.0000; raise"):
            ask(requests, ledger, backend, limits=Limits(price=CENT, max_cost=0.99))
        assert (backend.sent, len(ledger)) == ([], 0)
        for concurrency in (1, 2):
            with pytest.raises(CallsError, match=r"\$1\.0000 is spent, .* 5 of 10 calls are recorded"):
                ask(requests, ledger, backend, limits=Limits(concurrency=concurrency, price=CENT, max_cost=1.99))
            assert [len(message) for message in backend.sent] == [5]
        ask(requests, ledger, backend, limits=Limits(price=CENT, max_cost=2.0))
        assert len(ledger) == 10


def test_an_error_of_one_text_is_the_answer_to_it_alone(tmp_path: Path) -> None:
    class Refusing(Packing):
        async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
            async for answers in super().send_packed(requests):
                yield [
                    Answer.to(request, "error", "not this") if text_of(request) == "bad" else answer
                    for request, answer in zip(requests, answers, strict=True)
                ]

    with Ledger(tmp_path / "ledger") as ledger:
        answers = ask(requests_of("good", "bad", "fine"), ledger, Refusing())
        assert [answer.outcome for answer in answers] == ["answer", "error", "answer"]
        assert ledger.forget_errors() == 1
        backend = Packing()
        ask(requests_of("good", "bad", "fine"), ledger, backend)
        assert backend.texts == ["bad"]


@pytest.mark.heavy
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 9))
@settings(max_examples=12)
def test_slices_of_any_size_give_the_same(keys: list[int], size: int) -> None:
    answers = [made(f"{number:064x}", f"{number}", 1) for number in range(0, 60, 2)]
    wanted = [f"{number:064x}" for number in keys]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pluralbench_calls.ledger, "CHUNK_ROWS", size)
        with Ledger(Path(folder) / "a") as ledger, Ledger(Path(folder) / "b") as other:
            ledger.record(*answers)
            found = ledger.frame(wanted)
            assert found["key"].to_list() == sorted(
                {key for key in wanted if int(key, 16) % 2 == 0 and int(key, 16) < 60}
            )
            ledger.export(Path(folder) / "some.parquet", wanted)
            assert read_ledger(Path(folder) / "some.parquet").equals(found)
            ledger.export(Path(folder) / "a.parquet")
            other.add_from(Path(folder) / "a.parquet")
            assert other.frame().equals(ledger.frame())
