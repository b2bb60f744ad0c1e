"""Endpoints that fail: what is tried again, what is said, and that asking again goes on."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from chat_server import Reply, serve
from pluralbench_calls import (
    AccessDenied,
    CallsError,
    ConnectionFailed,
    Ledger,
    Limits,
    NotServed,
    OpenAIChat,
    Request,
    RequestsRejected,
    ask,
)

SOON = {"Retry-After": "0.05"}
LATE = Reply("late", delay=0.8)
PATIENCE = {True: 0.4, False: 10.0}  # seconds, for who is late and for all others
GO_ON = "are recorded; run the same command again to go on."


def question(text: str, **body: Any) -> Request:
    return Request("chat", "127.0.0.1", "m", {"messages": [{"role": "user", "content": text}], **body})


@pytest.mark.parametrize(
    "bad",
    [
        Reply("slow down", status=429, headers=SOON),
        Reply("oops", status=500, headers=SOON),
        Reply("busy", status=503, headers=SOON),
        Reply(hang_up=True),
        LATE,
    ],
    ids=["429", "500", "503", "dropped", "time-out"],
)
def test_a_passing_fault_is_tried_again(tmp_path: Path, bad: Reply) -> None:
    def once(_: dict[str, Any], number: int) -> Reply:
        return bad if number == 0 else Reply("fine")

    with serve(once) as server, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask(
            [question("hi")], ledger, OpenAIChat(server.base_url, timeout=PATIENCE[bad == LATE], max_retries=2)
        )
    assert (answer.outcome, answer.text) == ("answer", "fine")
    assert len(server.requests) == 2


def test_retry_after_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    def limited(_: dict[str, Any], number: int) -> Reply:
        return Reply("slow down", status=429, headers={"Retry-After": "41"}) if number == 0 else Reply()

    monkeypatch.setattr(anyio, "sleep", wait)
    with serve(limited) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([question("hi")], ledger, OpenAIChat(server.base_url, max_retries=1))
    assert waited == [41.0]


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        (Reply("quota", status=429, headers=SOON), ["keeps refusing for its rate limit or quota", "quota"]),
        (Reply("oops", status=500, headers=SOON), ["keeps failing", "500", "oops"]),
        (Reply(hang_up=True), ["cannot be reached", "disconnected"]),
        (LATE, ["did not answer in full within 0.4 s, in 2 tries"]),
    ],
    ids=["429", "500", "dropped", "time-out"],
)
def test_spent_retries_say_how_many_are_recorded_and_asking_again_goes_on(
    tmp_path: Path, bad: Reply, parts: list[str]
) -> None:
    requests = [question(str(number)) for number in range(5)]
    with Ledger(tmp_path / "ledger") as ledger:
        with serve(lambda _, number: bad if number >= 3 else Reply()) as server:
            chat = OpenAIChat(server.base_url, timeout=PATIENCE[bad == LATE], max_retries=1)
            with pytest.raises(ConnectionFailed) as failed:
                ask(requests, ledger, chat, limits=Limits(concurrency=1), label="answers")
        assert len(server.requests) == 5  # three answers, one try, one more try
        for part in ["127.0.0.1", *parts, f"3 of 5 answers {GO_ON}"]:
            assert part in str(failed.value)
        assert failed.value.exit_status == 2
        with serve(lambda *_: Reply()) as mended:  # on another port, which is no part of a request
            assert len(ask(requests, ledger, OpenAIChat(mended.base_url))) == 5
    assert sorted(body["messages"][0]["content"] for body in mended.requests) == ["3", "4"]


@pytest.mark.parametrize(
    ("reply", "kind", "parts"),
    [
        (Reply("bad key", status=401), AccessDenied, ["127.0.0.1 does not accept the key in PLANTED", "bad key"]),
        (Reply("no plan", status=403), AccessDenied, ["127.0.0.1 does not accept the key in PLANTED", "no plan"]),
        (Reply("unknown", status=404), NotServed, ["127.0.0.1 has no model 'm'", "unknown"]),
    ],
    ids=["401", "403", "404"],
)
def test_what_concerns_every_request_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, kind: type[CallsError], parts: list[str]
) -> None:
    monkeypatch.setenv("PLANTED", "sk-planted")
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, api_key_env="PLANTED")
        with pytest.raises(kind) as failed:
            ask([question("a"), question("b")], ledger, chat, limits=Limits(concurrency=1))
        assert len(ledger) == 0
    for part in [*parts, f"0 of 2 calls {GO_ON}"]:
        assert part in str(failed.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_key_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("PLANTED", raising=False)
    if value is not None:
        monkeypatch.setenv("PLANTED", value)
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, api_key_env="PLANTED")
        with pytest.raises(AccessDenied, match=r"127\.0\.0\.1 wants a key: set the environment variable PLANTED"):
            ask([question("hi")], ledger, chat)
    assert not server.requests


def test_a_server_that_is_down_cannot_be_reached(tmp_path: Path) -> None:
    with serve(lambda *_: Reply()) as server:
        pass
    with Ledger(tmp_path / "ledger") as ledger, pytest.raises(ConnectionFailed) as failed:
        ask([question("hi")], ledger, OpenAIChat(server.base_url))
    assert "127.0.0.1 cannot be reached (" in str(failed.value)
    assert "), in 2 tries. " in str(failed.value), "not in all seven, while nothing was ever there"
    assert f"0 of 1 calls {GO_ON}" in str(failed.value)


@pytest.mark.parametrize(
    "said", ["'response_format' is not supported", "unknown field: json_schema", "Structured output needs an H100"]
)
def test_a_json_schema_that_is_not_taken_names_the_field_of_the_model(tmp_path: Path, said: str) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    with serve(lambda *_: Reply(said, status=400)) as server, Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(NotServed, match=r"no JSON schema .* set `structured_output` of the model to false") as no:
            ask([question("hi", response_format=schema)], ledger, OpenAIChat(server.base_url))
        assert said in str(no.value)
        assert len(ledger) == 0
        with pytest.raises(RequestsRejected):
            ask([question("hi")], ledger, OpenAIChat(server.base_url))


@contextmanager
def serve_bytes(content: bytes) -> Iterator[str]:
    """A server that sends `content` with status 200, whatever it is asked; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if content.startswith(b"<") else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_address[1]}/v1"
        finally:
            httpd.shutdown()
            thread.join()


def completion(message: object, usage: object = None) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


def fine(content: object) -> dict[str, object]:
    return {"role": "assistant", "content": content}


def test_a_server_that_counts_no_tokens_is_counted_as_none(tmp_path: Path) -> None:
    with serve_bytes(completion(fine("hi"))) as base_url, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask([question("hi")], ledger, OpenAIChat(base_url))
    assert (answer.outcome, answer.prompt_tokens, answer.completion_tokens) == ("answer", 0, 0)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 3, "completion_tokens": None}])
def test_token_counts_that_are_missing_are_counted_as_none(tmp_path: Path, usage: dict[str, int | None]) -> None:
    with serve_bytes(completion(fine("hi"), usage)) as base_url, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask([question("hi")], ledger, OpenAIChat(base_url))
    assert (answer.outcome, answer.completion_tokens) == ("answer", 0)


def test_a_reply_without_choices_is_empty_and_stops_nothing(tmp_path: Path) -> None:
    blocked = {"id": "1", "object": "chat.completion", "model": "m", "choices": [], "usage": {"prompt_tokens": 7}}
    with serve_bytes(json.dumps(blocked).encode()) as base_url, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask([question("hi")], ledger, OpenAIChat(base_url))
    assert (answer.outcome, answer.prompt_tokens, answer.completion_tokens) == ("empty", 7, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Sign in to the wireless network</html>",
        b"{not JSON",
        b"[]",
        b"null",
        completion(None),
        completion(fine([{"type": "text", "text": "hi"}])),
        completion(fine("half a character: \ud83d")),
    ],
    ids=["html", "broken", "list", "null", "no message", "parts", "lone surrogate"],
)
def test_an_odd_reply_is_recorded_or_said_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    with serve_bytes(content) as base_url, Ledger(tmp_path / "ledger") as ledger, suppress(CallsError):
        ask([question("hi")], ledger, OpenAIChat(base_url, max_retries=0))


def test_an_error_under_status_200_is_no_empty_answer(tmp_path: Path) -> None:
    content = b'{"error": {"message": "Provider overloaded", "code": 502}}'
    with serve_bytes(content) as base_url, Ledger(tmp_path / "ledger") as ledger:
        with suppress(CallsError):
            ask([question("hi")], ledger, OpenAIChat(base_url, max_retries=0))
        assert "empty" not in ledger.frame()["outcome"].to_list()
