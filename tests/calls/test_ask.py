"""Asking: order, what is sent and what is not, what comes of each reply, and when it is recorded."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from asking import question
from chat_server import Reply, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Backend, CallsError, Ledger, Limits, OpenAIChat, Request, ask, read_ledger
from pluralbench_calls.records import prompt_texts

ONE_BY_ONE = Limits(concurrency=1)


def chat_at(base_url: str, **options: Any) -> OpenAIChat:
    return OpenAIChat(base_url, **{"max_retries": 0, "timeout": 10.0, **options})


def echo(body: dict[str, Any], _: int) -> Reply:
    return Reply(f"re: {body['messages'][0]['content']}")


@pytest.mark.smoke
def test_answers_come_in_the_order_of_the_requests(tmp_path: Path) -> None:
    def slow_first(body: dict[str, Any], number: int) -> Reply:
        return Reply(echo(body, number).text, delay=0.1 if number == 0 else 0.0)

    texts = [f"{number} سؤال 问题 🙂" for number in range(12)]
    with serve(slow_first) as server, Ledger(tmp_path / "ledger") as ledger:
        answers = ask([question(text) for text in texts], ledger, OpenAIChat(server.base_url))
    assert [answer.text for answer in answers] == [f"re: {text}" for text in texts]


class Uneven(Backend):
    """Takes a number of steps for each request, by its sample.

    started: texts in the order in which they were sent. together: those in flight with each, itself among them.
    """

    concurrency = None

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps = steps
        self.started: list[str] = []
        self.together: list[set[str]] = []
        self._in_flight: set[str] = set()

    async def send(self, request: Request) -> Answer:
        [text] = prompt_texts(request)
        self._in_flight.add(text)
        self.started.append(text)
        self.together.append({*self._in_flight})
        for _ in range(self.steps[request.sample]):
            await asyncio.sleep(0)
        self._in_flight.remove(text)
        return Answer.to(request, "answer", "fine")


users = st.lists(st.sampled_from(["鼓", "user", "سؤال", "使"]), min_size=1, max_size=30)


@given(users, st.integers(1, 5), st.data())
@settings(max_examples=60)
def test_a_prompt_waits_for_the_first_with_its_beginning_but_no_worker_does(
    users: list[str], workers: int, data: st.DataObject
) -> None:
    texts = [f"Profile of {user}. Question {number}" for number, user in enumerate(users)]
    backend = Uneven(data.draw(st.lists(st.integers(0, 3), min_size=len(texts), max_size=len(texts))))
    requests = [question(text, sample=number) for number, text in enumerate(texts)]
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        answers = ask(requests, ledger, backend, limits=Limits(concurrency=workers))
    assert [answer.key for answer in answers] == [request.key for request in requests]
    assert sorted(backend.started) == sorted(texts), "each is sent once"
    if workers == 1:
        assert backend.started == sorted(texts)
    begun = [text.split(".")[0] for text in backend.started]
    firsts = {profile: begun.index(profile) for profile in begun}
    for place, (profile, together) in enumerate(zip(begun, backend.together, strict=True)):
        if place != firsts[profile] and backend.started[firsts[profile]] in together:
            assert set(begun[:place]) == set(begun), "all other profiles were sent before"


def test_a_request_goes_out_as_it_is(tmp_path: Path) -> None:
    own: dict[str, Any] = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}  # of this server
    request = question("hi 你好", sample=3, label="not sent", temperature=0.5, max_tokens=7, seed=1, **own)
    with serve(echo) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([request], ledger, chat_at(server.base_url))
    assert server.requests == [{"model": "m", **request.body}]


def test_equal_requests_are_asked_once(tmp_path: Path) -> None:
    requests = [question("a", label="one"), question("b"), question("a", label="two"), question("a", sample=1)]
    with serve(echo) as server, Ledger(tmp_path / "ledger") as ledger:
        answers = ask(requests, ledger, chat_at(server.base_url))
    assert len(server.requests) == len(read_ledger(tmp_path / "ledger")) == 3
    assert answers[0] == answers[2] != answers[3]


@pytest.mark.parametrize(("limit", "own", "most"), [(3, None, 3), (4, 2, 2), (2, 4, 2)])
def test_no_more_at_once_than_the_limits_and_the_backend_allow(
    tmp_path: Path, limit: int, own: int | None, most: int
) -> None:
    with serve(lambda *_: Reply(delay=0.03)) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = chat_at(server.base_url)
        chat.concurrency = own
        ask([question(str(number)) for number in range(12)], ledger, chat, limits=Limits(concurrency=limit))
    assert server.most_at_once == most


def test_each_answer_is_recorded_before_the_next_request_of_its_worker(tmp_path: Path) -> None:
    recorded: list[int] = []

    def look(body: dict[str, Any], number: int) -> Reply:
        recorded.append(read_ledger(tmp_path / "ledger").height)
        return echo(body, number)

    with serve(look) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([question(str(number)) for number in range(5)], ledger, chat_at(server.base_url), limits=ONE_BY_ONE)
    assert recorded == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        (Reply("好 🙂\u2028\0"), "answer", "好 🙂\u2028\0"),
        (Reply(""), "empty", ""),
        (Reply(None), "empty", ""),
        (Reply(" \n"), "empty", " \n"),
        (Reply("", finish_reason="length"), "length", ""),
        (Reply("cut", finish_reason="length"), "length", "cut"),
        (Reply("half", finish_reason="content_filter"), "content_filter", "half"),
        *(
            (Reply("half", finish_reason=reason), outcome, "half")
            for outcome, reasons in {
                "length": (
                    "max_tokens",
                    "MAX_TOKENS",
                    "model_length",
                    "FinishReason.MAX_TOKENS",
                    "error",
                    "ERROR",
                    "abort",
                ),
                "content_filter": ("SAFETY", "guardrail_intervened"),
                "refusal": ("refusal",),
                "answer": ("stop", "STOP", "COMPLETE", "end_turn", "eos", "unknown", ""),
            }.items()
            for reason in reasons
        ),
        (Reply(None, refusal="I cannot."), "refusal", "I cannot."),
        (Reply("half", refusal="I cannot."), "refusal", "half"),
    ],
)
def test_a_reply_is_recorded_as_what_it_is(tmp_path: Path, reply: Reply, outcome: str, text: str) -> None:
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask([question("hi", label="greeting")], ledger, chat_at(server.base_url))
        assert ledger.find([answer.key]) == {question("hi").key: answer}
    assert (answer.outcome, answer.text, answer.finish_reason) == (outcome, text, reply.finish_reason)
    assert (answer.kind, answer.provider, answer.label) == ("chat", "127.0.0.1", "greeting")
    assert (answer.model, answer.prompt_tokens, answer.completion_tokens) == ("model-2026-01-01", 10, 5)
    assert answer.recorded_at.endswith("+00:00")


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_request_is_recorded_and_not_asked_again(tmp_path: Path, status: int) -> None:
    def reject_long(body: dict[str, Any], number: int) -> Reply:
        return Reply("太长", status=status) if "long" in str(body) else echo(body, number)

    requests = [question("long"), question("short")]
    with serve(reject_long) as server, Ledger(tmp_path / "ledger") as ledger:
        rejected, answered = ask(requests, ledger, chat_at(server.base_url, max_retries=3))
        assert (rejected.outcome, rejected.finish_reason, answered.outcome) == ("error", str(status), "answer")
        assert "太长" in rejected.text
        assert (rejected.prompt_tokens, rejected.completion_tokens) == (0, 0)
        ask(requests, ledger, chat_at(server.base_url))
        assert len(server.requests) == 2
        assert ledger.forget_errors() == 1
        ask(requests, ledger, chat_at(server.base_url))
        assert len(server.requests) == 3


def test_at_an_error_what_is_in_flight_is_recorded_and_nothing_more_is_sent(tmp_path: Path) -> None:
    def first_denied(_: dict[str, Any], number: int) -> Reply:
        return Reply("no", status=401, delay=0.05) if number == 0 else Reply(delay=0.2)

    requests = [question(str(number)) for number in range(20)]
    with serve(first_denied) as server, Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError, match="3 of 20 calls are recorded"):
            ask(requests, ledger, chat_at(server.base_url), limits=Limits(concurrency=4))
        assert len(ledger) == 3
    assert len(server.requests) == 4


def test_known_requests_are_not_sent(tmp_path: Path) -> None:
    with serve(echo) as server, Ledger(tmp_path / "ledger") as ledger:
        first = ask([question("a"), question("b")], ledger, chat_at(server.base_url))
        again = ask([question("c"), question("b"), question("a")], ledger, chat_at(server.base_url))
    assert [body["messages"][0]["content"] for body in server.requests[2:]] == ["c"]
    assert again[1:] == first[::-1]
