"""Endpoints that fail: what is tried again, what is said, and that asking again goes on."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from asking import question
from chat_server import Reply, serve
from listening import QuietHandler, listening
from pluralbench_calls import CallsError, Ledger, Limits, OpenAIChat, ask
from pluralbench_calls.chat import ChatModel, ConnectionConfig, check_endpoint

SOON = {"Retry-After": "0.05"}
LATE = Reply("late", delay=0.8)
PATIENCE = {True: 0.4, False: 10.0}  # seconds, for who is late and for all others
GO_ON = "are recorded; rerun the same command to resume."


@pytest.mark.parametrize(("status", "accepted"), [(200, True), (401, False), (403, True), (404, True), (500, True)])
def test_an_endpoint_is_checked_by_its_models_and_only_a_refused_key_counts(
    monkeypatch: pytest.MonkeyPatch, status: int, accepted: bool
) -> None:
    asked = list[tuple[str, str]]()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.answer_with(status, b'{"error": {"message": "no"}}', {"Content-Type": "application/json"})

    monkeypatch.setenv("PLURALBENCH_TEST_KEY", "k")
    model = ChatModel(provider="p", model="m")
    with listening(Handler) as url:
        connection = ConnectionConfig(base_url=f"{url}/v1", api_key_env="PLURALBENCH_TEST_KEY")
        if accepted:
            check_endpoint(model, connection)
        else:
            with pytest.raises(CallsError, match="does not accept the key in PLURALBENCH_TEST_KEY"):
                check_endpoint(model, connection)
        check_endpoint(model, ConnectionConfig(base_url="http://127.0.0.1:9/v1", pending=Path("calls.jsonl")))
    assert asked == [("/v1/models", "Bearer k")]


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


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        (Reply("quota", status=429, headers=SOON), ["keeps refusing because of a rate limit or quota", "quota"]),
        (Reply("oops", status=500, headers=SOON), ["keeps failing", "500", "oops"]),
        (Reply(hang_up=True), ["cannot be reached", "disconnected"]),
        (LATE, ["did not answer completely within 0.4 s, in 1 try"]),
    ],
    ids=["429", "500", "dropped", "time-out"],
)
def test_spent_retries_say_how_many_are_recorded_and_asking_again_goes_on(
    tmp_path: Path, bad: Reply, parts: list[str]
) -> None:
    requests = [question(str(number)) for number in range(9)]
    with Ledger(tmp_path / "ledger") as ledger:
        with serve(lambda _, number: bad if number >= 3 else Reply()) as server:
            retries = int(bad.status != 200)  # with a short pause; after others it is longer
            chat = OpenAIChat(server.base_url, timeout=PATIENCE[bad == LATE], max_retries=retries)
            with pytest.raises(CallsError) as failed:
                ask(requests, ledger, chat, limits=Limits(concurrency=1), label="answers")
        # A rate limit stops at once, other failures after five requests in a row.
        assert len(server.requests) == 3 + (1 if bad.status == 429 else 5) * (1 + retries)
        for part in ["127.0.0.1", *parts, f"3 of 9 answers {GO_ON}"]:
            assert part in str(failed.value)
        assert failed.value.exit_status == 2
        with serve(lambda *_: Reply()) as mended:  # on another port, which is no part of a request
            assert len(ask(requests, ledger, OpenAIChat(mended.base_url))) == 9
    assert sorted(body["messages"][0]["content"] for body in mended.requests) == [*"345678"]


@pytest.mark.parametrize(
    ("reply", "kind", "parts"),
    [
        (Reply("bad key", status=401), CallsError, ["127.0.0.1 does not accept the key in PLANTED", "bad key"]),
        (Reply("no plan", status=403), CallsError, ["127.0.0.1 does not accept the key in PLANTED", "no plan"]),
        (Reply("unknown", status=404), CallsError, ["127.0.0.1 has no model 'm'", "unknown"]),
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


def test_a_base_url_without_a_version_is_asked_about(tmp_path: Path) -> None:
    with serve(lambda *_: Reply("unknown", status=404)) as server, Ledger(tmp_path / "ledger") as ledger:
        for url, hint in ((server.base_url, ""), (server.base_url.removesuffix("/v1"), "does the base URL lack /v1")):
            with pytest.raises(CallsError, match=rf"has no model 'm' .*unknown\).*{hint}"):
                ask([question("a")], ledger, OpenAIChat(url))


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_key_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("PLANTED", raising=False)
    if value is not None:
        monkeypatch.setenv("PLANTED", value)
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, api_key_env="PLANTED")
        with pytest.raises(CallsError, match=r"127\.0\.0\.1 needs a key; set the environment variable PLANTED"):
            ask([question("hi")], ledger, chat)
    assert not server.requests


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
