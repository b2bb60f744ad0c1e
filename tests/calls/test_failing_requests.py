"""A request that a server never answers is counted, and sent again by the next command; a server that is down stops."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from asking import question
from chat_server import Reply, serve
from pluralbench_calls import CallsError, InvalidAnswer, Ledger, Limits, OpenAIChat, Replay, ask, ask_until_valid

SOON = {"Retry-After": "0.05"}
FAILURES = {
    "500": Reply("oops", status=500, headers=SOON),
    "dropped": Reply(hang_up=True),
    "time-out": Reply("late", delay=2.0),
    "no choices": Reply(body={"id": "c", "object": "chat.completion", "usage": {}}),
    "an error": Reply(body={"error": {"message": "blocked", "code": "blocked"}}),
}
TEXTS = [str(number) for number in range(8)]


def asked(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


@pytest.mark.parametrize(
    ("failure", "samples"), [("500", 6), ("dropped", 1), ("time-out", 1), ("no choices", 1), ("an error", 1)]
)
def test_a_request_that_always_fails_is_counted_and_sent_again_by_the_next_command(
    tmp_path: Path, failure: str, samples: int
) -> None:
    def poisoned(body: dict[str, Any], _: int) -> Reply:
        return FAILURES[failure] if asked(body) == "7" else Reply(asked(body))

    requests = [question(text, sample=sample) for text in TEXTS for sample in range(samples)]
    with serve(poisoned) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, timeout=1.5 if failure == "time-out" else 10.0, max_retries=0)
        answers = ask(requests, ledger, chat)
        assert [one.text for one in answers[:-samples]] == [text for text in TEXTS[:-1] for _ in range(samples)]
        assert {one.outcome for one in answers[-samples:]} == {"error"}
        assert len(server.requests) == len(requests)
        server.requests.clear()
        assert ask(requests, ledger, chat)[:-samples] == answers[:-samples]
        assert [asked(body) for body in server.requests] == ["7"] * samples
        assert len(ask(requests, ledger, Replay())) == len(requests)  # a replay takes what is recorded
    with serve(lambda *_: Reply("mended")) as server, Ledger(tmp_path / "ledger") as ledger:
        answers = ask(requests, ledger, OpenAIChat(server.base_url))
        assert [one.text for one in answers[-samples:]] == ["mended"] * samples
        assert len(server.requests) == samples
        ask(requests, ledger, OpenAIChat(server.base_url))
        assert len(server.requests) == samples


def test_a_reply_that_fails_is_invalid_with_its_reason_and_not_asked_again_by_the_same_command(tmp_path: Path) -> None:
    def poisoned(body: dict[str, Any], _: int) -> Reply:
        return FAILURES["500"] if asked(body) == "3" else Reply("[[A]]" if asked(body) == "1" else "unclear")

    def read(_: str, text: str) -> str:
        if text == "unclear":
            raise InvalidAnswer(text)
        return text

    with serve(poisoned) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, max_retries=0)
        replies = ask_until_valid(
            ["1", "2", "3"], lambda text, attempt: question(text, sample=attempt), read, ledger, chat, attempts=3
        )
    assert [reply.reason for reply in replies] == ["", "unclear", "not answered by the server"]
    assert sorted(map(asked, server.requests)) == ["1", "2", "2", "2", "3"]


@pytest.mark.parametrize("answered", [0, 3])
def test_a_server_that_is_down_stops_the_run(tmp_path: Path, answered: int) -> None:
    requests = [question(text) for text in TEXTS] + [question(f"more {n}") for n in range(40)]
    with Ledger(tmp_path / "ledger") as ledger:
        message = rf"keeps failing .*{answered} of 48 calls are recorded; rerun"
        with (
            serve(lambda _, number: Reply() if number < answered else FAILURES["500"]) as server,
            pytest.raises(CallsError, match=message),
        ):
            ask(requests, ledger, OpenAIChat(server.base_url, max_retries=0), limits=Limits(concurrency=1))
        assert len(server.requests) == answered + (5 if answered else 3)
        assert len(ledger) == answered
        with serve(lambda *_: Reply()) as mended:
            ask(requests, ledger, OpenAIChat(mended.base_url))
        assert len(mended.requests) == 48 - answered


@pytest.mark.parametrize(("code", "tries"), [(502, 3), (429, 3), (400, 1)])
def test_an_error_with_a_success_status_counts_by_its_code(tmp_path: Path, code: int, tries: int) -> None:
    """OpenRouter sends an upstream's error so."""

    def failing(body: dict[str, Any], number: int) -> Reply:
        return Reply(headers=SOON, body={"error": {"code": code, "message": "upstream"}}) if number < tries else Reply()

    with serve(failing) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, max_retries=3)
        if code == 400:
            with pytest.raises(CallsError, match="rejects these requests: upstream"):
                ask([question()], ledger, chat)
        else:
            [answer] = ask([question()], ledger, chat)
            assert answer.text == "fine"
    assert len(server.requests) == tries + (code != 400)


def test_ctrl_c_finishes_the_requests_in_flight_and_a_second_one_does_not(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press_at_the_fourth(_: object, number: int) -> Reply:
        if number == 3:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        if number == 7:
            for seconds in (0.2, 0.6):
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
        return Reply(delay=0.5 if number < 4 else 5.0)

    requests = [question(str(number)) for number in range(20)]
    try:
        with serve(press_at_the_fourth) as server, Ledger(tmp_path / "ledger") as ledger:
            for sent in (4, 8):
                with pytest.raises(CallsError, match=r"Interrupted\. 4 of 20 calls are recorded"):
                    ask(requests, ledger, OpenAIChat(server.base_url), limits=Limits(concurrency=4))
                assert len(server.requests) == sent
    finally:
        signal.signal(signal.SIGINT, before)
