"""Asking again until an answer is valid, and replays, which ask nothing."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chat_server import Reply, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import (
    Answer,
    InvalidAnswer,
    Ledger,
    Limits,
    OpenAIChat,
    PackingBackend,
    PermanentError,
    Replay,
    Request,
    ask,
    ask_until_valid,
    strip_thinking,
)
from pluralbench_calls.backends.canned import ExternalBackend, Unanswered
from pluralbench_calls.records import prompt_texts
from pluralbench_calls.retry import THINKING


def question(item: str, attempt: int) -> Request:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": item}], "seed": attempt}
    return Request("chat", "127.0.0.1", "m", body, sample=attempt, label=f"answer for {item}, attempt {attempt + 1}")


def number(item: str, text: str) -> int:
    if not text.isdigit():
        raise InvalidAnswer(f"{text!r} is no number for {item}")
    return int(text)


def asked(bodies: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((body["messages"][0]["content"], body["seed"]) for body in bodies)


def test_only_what_is_invalid_is_asked_again_and_items_keep_their_order(tmp_path: Path) -> None:
    first_valid = {"a": 0, "乙": 2, "ج": 1, "d": 0}

    def reply(body: dict[str, Any], _: int) -> Reply:
        item, attempt = body["messages"][0]["content"], body["seed"]
        return Reply(f"{attempt}" if attempt >= first_valid[item] else "none", delay=0.1 if item == "a" else 0)

    with serve(reply) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        settled = ask_until_valid(list(first_valid), question, number, ledger, chat, attempts=5)
        assert [(one.value, one.attempts, one.reason) for one in settled] == [
            (0, 1, ""),
            (2, 3, ""),
            (1, 2, ""),
            (0, 1, ""),
        ]
        assert [one.answer.label for one in settled] == [
            f"answer for {item}, attempt {one.attempts}" for item, one in zip(first_valid, settled, strict=True)
        ]
        assert asked(server.requests) == [("a", 0), ("d", 0), ("ج", 0), ("ج", 1), ("乙", 0), ("乙", 1), ("乙", 2)]
        assert ask_until_valid(list(first_valid), question, number, ledger, Replay(), attempts=5) == settled
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(None, refusal="12"), "refused"),
        (Reply("12", finish_reason="length"), "cut off at the token limit"),
        (Reply("12", finish_reason="MAX_TOKENS"), "cut off at the token limit"),
        (Reply("12", finish_reason="error"), "broken off by the server"),
        (Reply("12", finish_reason="content_filter"), "stopped by a content filter"),
        (Reply(""), "empty answer"),
    ],
)
def test_what_is_no_answer_is_asked_again_and_never_parsed(tmp_path: Path, reply: Reply, reason: str) -> None:
    parsed: list[str] = []

    def parse(_: str, text: str) -> str:
        parsed.append(text)
        return text

    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        [settled] = ask_until_valid(["a"], question, parse, ledger, OpenAIChat(server.base_url), attempts=2)
    assert (settled.value, settled.attempts, settled.reason) == (None, 2, reason)
    assert not parsed


def test_a_rejected_request_is_not_asked_again(tmp_path: Path) -> None:
    def reject_long(body: dict[str, Any], _: int) -> Reply:
        return Reply("too long", status=400) if body["messages"][0]["content"] == "long" else Reply("none")

    with serve(reject_long) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        long, short = ask_until_valid(["long", "short"], question, number, ledger, chat, attempts=2)
    assert (long.value, long.attempts, long.reason) == (None, 1, "rejected by the server")
    assert "too long" in long.answer.text
    assert short.attempts == 2
    assert asked(server.requests) == [("long", 0), ("short", 0), ("short", 1)]


def test_a_replay_answers_from_the_ledger_and_names_what_is_missing(tmp_path: Path) -> None:
    known, missing, other = (question(item, 0) for item in ("known", "缺", "鼓"))
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        recorded = ask([known], ledger, OpenAIChat(server.base_url))
        assert ask([known, known], ledger, Replay()) == recorded * 2
        with pytest.raises(PermanentError) as stopped:
            ask([known, missing, other], ledger, Replay(), label="answers")
    message = str(stopped.value)
    for part in ["answer for 缺, attempt 1", "model m at 127.0.0.1", missing.key[:12], "1 of 3 answers are recorded"]:
        assert part in message
    assert "again" not in message  # the same command would fail again
    assert not stopped.value.resumable


def test_another_program_sends_what_is_missing_until_every_reply_can_be_read(tmp_path: Path) -> None:
    items, rounds = ["1", "none", "3"], []
    with Ledger(tmp_path / "ledger") as ledger:
        while True:
            try:
                settled = ask_until_valid(items, question, number, ledger, ExternalBackend(), attempts=2)
                break
            except Unanswered as missing:
                rounds.append([(one.body["messages"], one.sample) for one in missing.requests])
                ledger.record(*(Answer.to(one, "answer", prompt_texts(one)[-1]) for one in missing.requests))
        assert settled == ask_until_valid(items, question, number, ledger, Replay(), attempts=2)
    assert [(one.value, one.attempts) for one in settled] == [(1, 1), (None, 2), (3, 1)]
    assert [len(sent) for sent in rounds] == [3, 1]


@pytest.mark.parametrize(
    ("reply", "fix"),
    [
        (Reply("I like the first one more, since it is kind"), "choose a model that keeps to the form of the reply"),
        (Reply("Let me think", finish_reason="length"), "increase `max_tokens=...`"),
        (Reply("Let me think", finish_reason="error"), "choose a model that keeps to the form of the reply"),
    ],
)
def test_replies_of_which_none_can_be_read_are_not_paid_any_further(tmp_path: Path, reply: Reply, fix: str) -> None:
    items = [f"item {place}" for place in range(40)]
    sent = 0
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        for _ in range(2):  # the second time it costs nothing
            with pytest.raises(PermanentError) as stopped:
                ask_until_valid(items, question, number, ledger, OpenAIChat(server.base_url), attempts=4, label="votes")
            sent = sent or len(server.requests)
            assert 12 <= sent == len(server.requests) == len(ledger) < 12 + Limits().concurrency
    assert re.match(r"None of the first \d\d votes by ", str(stopped.value))
    assert f"one reply ends: {reply.text!r}); {fix}. {sent} of 40 votes are recorded." in str(stopped.value)


class Shuffled(PackingBackend):
    """Answers a message one by one in this order; the request at `readable` gets a number."""

    concurrency = None

    def __init__(self, order: Sequence[int], readable: int) -> None:
        self.order, self.readable = order, readable

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        return [[*requests]]

    def size(self, request: Request) -> int:
        return 0

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        for place in self.order:
            text = "7" if place == self.readable else "none"
            yield [Answer.to(requests[place], "answer", text)]


@settings(deadline=None, max_examples=10)
@given(st.permutations(range(20)), st.integers(0, 19))
def test_the_first_that_were_sent_decide_whatever_order_replies_come_in(order: list[int], readable: int) -> None:
    items = [f"item {place:02}" for place in range(20)]
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        backend = Shuffled(order, readable)
        if readable in order[: max(map(order.index, range(12))) + 1]:  # when the last of the first twelve comes
            ask_until_valid(items, question, number, ledger, backend, attempts=1)
        else:
            with pytest.raises(PermanentError, match="None of the first"):
                ask_until_valid(items, question, number, ledger, backend, attempts=1)


def test_recorded_replies_are_read_whatever_their_form(tmp_path: Path) -> None:
    """A replay pays nothing, so that a stop saves nothing."""
    items = [f"item {place}" for place in range(20)]
    with serve(lambda *_: Reply("none")) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([question(item, 0) for item in items], ledger, OpenAIChat(server.base_url))
        settled = ask_until_valid(items, question, number, ledger, Replay(), attempts=1)
    assert {one.attempts for one in settled if one.reason} == {1}


def test_one_readable_reply_of_the_first_is_enough_to_go_on(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        return Reply("1" if body["messages"][0]["content"] == "item 0" else "none")

    items = [f"item {place}" for place in range(14)]
    with serve(reply) as server, Ledger(tmp_path / "ledger") as ledger:
        settled = ask_until_valid(items, question, number, ledger, OpenAIChat(server.base_url), attempts=2)
        assert len(server.requests) == 14 + 13
    assert [one.attempts for one in settled] == [1 if place == 0 else 2 for place in range(14)]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_no_part_of_a_reply_wherever_a_server_puts_it(tmp_path: Path, field: str) -> None:
    replies = {
        "beside": Reply("7", message={field: "8 or 9"}),
        "only": Reply(None, message={field: "8"}),
        "tags": Reply("<think>8</think>7"),
        "closed": Reply("8 or 9\n</think>\n7"),
        "brackets": Reply("[THINK]8[/THINK]7"),
        "open": Reply("\n<thinking>8"),
    }
    with (
        serve(lambda body, _: replies[body["messages"][0]["content"]]) as server,
        Ledger(tmp_path / "ledger") as ledger,
    ):
        chat = OpenAIChat(server.base_url)

        def parse(item: str, text: str) -> int:
            return number(item, strip_thinking(text).strip())

        read = ask_until_valid(list(replies), question, parse, ledger, chat, attempts=1)
    assert [one.value for one in read] == [7, None, 7, 7, 7, None]
    assert (read[1].reason, read[5].reason) == ("empty answer", "thinking without an answer")


@pytest.mark.parametrize(
    ("thoughts", "cut"),
    [
        *((f"{begin}7, or 8?{end}", f"{begin}7{end} So {begin}8") for begin, end in THINKING),
        *((f" {begin}\n7{end}", f"{begin}So 8") for begin, end in THINKING),
        ("<|channel|>analysis<|message|>7?<|end|><|start|>assistant<|channel|>final<|message|>", "<|channel|>analysis"),
        ("analysisWe need 8.assistantfinal", "analysisWe need"),
        ("<think>7</think> Hm. <think>8</think>", "<think>7</think> So <think> 8 might be"),
        ("7, as the template began it.</think>", "7</think>8<|channel|>commentary"),
    ],
)
def test_thinking_in_any_marks_is_no_answer(thoughts: str, cut: str) -> None:
    assert strip_thinking(f"{thoughts}\n9") == "\n9"
    assert strip_thinking("analysis of <thoughts> 9") == "analysis of <thoughts> 9"
    with pytest.raises(InvalidAnswer, match="thinking without an answer"):
        strip_thinking(cut)


@pytest.mark.parametrize(("cut", "of", "noticed"), [(4, 5, False), (5, 20, True), (9, 11, True), (5, 120, False)])
def test_replies_that_the_token_limit_cuts_are_noticed_once_as_they_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: int, of: int, noticed: bool
) -> None:
    def limited(item: str, attempt: int) -> Request:
        first = question(item, attempt)
        return replace(first, body={**first.body, "max_tokens": 64})

    def reply(body: dict[str, Any], number: int) -> Reply:
        return Reply("7", finish_reason="length" if of - 1 - cut <= number < of - 1 or body["seed"] else "stop")

    items = [f"{place:03}" for place in range(of)]
    with serve(reply) as server, Ledger(tmp_path / "ledger") as ledger:
        ask_until_valid(
            items, limited, number, ledger, OpenAIChat(server.base_url), attempts=2, limits=Limits(concurrency=1)
        )
    lines = [line for line in capsys.readouterr().err.splitlines() if "cut off at the limit of 64 tokens" in line]
    assert len(lines) == noticed
    assert all("--max-tokens" in line and line.startswith("5 of ") for line in lines)


def test_it_gives_up_after_so_many_attempts_and_says_why(tmp_path: Path) -> None:
    with serve(lambda body, _: Reply(f"word {body['seed']}")) as server, Ledger(tmp_path / "ledger") as ledger:
        [settled] = ask_until_valid(["a"], question, number, ledger, OpenAIChat(server.base_url), attempts=3)
    assert (settled.value, settled.attempts, settled.reason) == (None, 3, "'word 2' is no number for a")
    assert settled.answer.text == "word 2"
    assert asked(server.requests) == [("a", 0), ("a", 1), ("a", 2)]
