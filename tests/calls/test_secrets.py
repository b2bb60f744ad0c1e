"""A key goes to its endpoint and nowhere else: not into the ledger, an error, a log, or to another endpoint."""

import logging
import traceback
from pathlib import Path

import pytest
from asking import question
from chat_server import Reply, serve
from pluralbench_calls import CallsError, Ledger, OpenAIChat, ask, read_ledger

KEY = "sk-planted-7c41f0d2b9a8"
VARIABLE = "PLANTED_KEY"
ECHO = Reply(f"Incorrect API key provided: {KEY}.", headers={"Retry-After": "0.05"})


def assert_nowhere(folder: Path, secret: str = KEY) -> None:
    for path in folder.rglob("*"):
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("status", [400, 413, 422, 401, 403, 404, 429, 500])
def test_a_key_that_the_server_repeats_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    reply = Reply(ECHO.text, status=status, headers=ECHO.headers)
    message = ""
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        try:
            ask([question()], ledger, OpenAIChat(server.base_url, api_key_env=VARIABLE, max_retries=1))
        except CallsError as error:
            message = "".join(traceback.format_exception(error))
        ledger.export(tmp_path / "ledger.parquet")
        assert_nowhere(tmp_path)
    rows = str(read_ledger(tmp_path / "ledger.parquet").rows())
    assert "[key]" in message + rows
    assert KEY not in message + rows
    assert KEY not in caplog.text
    assert_nowhere(tmp_path)


def test_a_key_that_is_accepted_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, api_key_env=VARIABLE)
        [answer] = ask([question()], ledger, chat)
        assert KEY not in repr(answer) + repr(chat) + caplog.text
    assert server.base_url not in repr(answer)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert_nowhere(tmp_path)


def test_a_deployment_at_azure_gets_its_version_and_the_key_in_a_header_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        url = f"{server.base_url.removesuffix('/v1')}/openai/deployments/d?api-version=2024-10-21"
        ask([question()], ledger, OpenAIChat(f" {url} ", api_key_env=VARIABLE))
        ask([question("other")], ledger, OpenAIChat(url))
    assert server.paths == ["/openai/deployments/d/chat/completions?api-version=2024-10-21"] * 2
    assert [headers.get("api-key") for headers in server.headers] == [KEY, None]
    assert [headers.get("authorization") for headers in server.headers] == [None, None]


def test_a_key_in_place_of_the_name_of_its_variable_is_not_repeated(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger, pytest.raises(CallsError) as refused:
        ask([question()], ledger, OpenAIChat("http://127.0.0.1:9/v1", api_key_env=KEY))
    assert "set the environment variable that `connection.api_key_env=...` names" in str(refused.value)
    assert KEY not in str(refused.value)


def test_without_a_variable_no_key_of_the_environment_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, KEY)
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login me password {KEY}\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gateway-Key: {KEY}")
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([question()], ledger, OpenAIChat(server.base_url))
    assert len(server.requests) == 1
    assert KEY not in str(server.headers) + str(server.requests)
    assert "authorization" not in {name.lower() for name in server.headers[0]}
