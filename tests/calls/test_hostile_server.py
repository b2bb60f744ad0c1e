"""A server that does everything wrong: each request ends, in an answer that is recorded as what it is or a sentence."""

import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from asking import question
from chat_server import Reply, serve
from pluralbench_calls import (
    Answer,
    CallsError,
    ChatModel,
    ConnectionConfig,
    InvalidAnswer,
    Ledger,
    Limits,
    OpenAIChat,
    Price,
    ask,
    ask_until_valid,
    chat_backend,
    read_ledger,
)
from raw_server import RawServer, completion, http, serve_raw

MIB = 2**20
VARIABLE, KEY = "PLANTED", 'sk-"planted"/7c41+f0d2'  # named like no secret, with what JSON and URLs escape
CHUNKED = http(b"", "Transfer-Encoding: chunked")


def asked(server: RawServer, folder: Path, *, seconds: float = 20.0, **options: object) -> Answer:
    """What is recorded of one request, which gets one try."""
    connection = ConnectionConfig(base_url=server.base_url, timeout=seconds, max_retries=0, **options)
    with Ledger(folder / "ledger") as ledger:
        chat = chat_backend(ChatModel(provider="127.0.0.1", model="m"), connection)
        [answer] = ask([question()], ledger, chat, limits=connection.limits())
        ledger.export(folder / "ledger.parquet")
    assert read_ledger(folder / "ledger.parquet").height == 1
    return answer


def dripping(_: int) -> Iterator[bytes]:
    yield http(b"", length=MIB)
    while True:
        time.sleep(0.02)
        yield b" "


def blanks(_: int) -> Iterator[bytes]:
    yield http(gzip.compress(b" " * 300 * MIB, 1), "Content-Encoding: gzip")


def endless_chunks(_: int) -> Iterator[bytes]:
    yield CHUNKED
    while True:
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"


def endless_headers(_: int) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        yield f"X-{number}: {'y' * 1000}\r\n".encode()


def always(*pieces: bytes) -> Callable[[int], Iterable[bytes]]:
    return lambda _: pieces


@pytest.mark.parametrize(
    ("answering", "seconds", "sentence"),
    [
        (dripping, 0.3, "did not answer completely within 0.3 s, in 1 try"),
        (endless_headers, 20, "cannot be reached ("),
        (always(http(b"<html><p>Sign in</p></html>")), 20, "not a chat completion (Expecting value"),
        (always(http(completion(), length=9999)), 20, "cannot be reached (peer closed connection"),
        (always(b"\x16\x03\x01 no HTTP at all"), 20, "cannot be reached ("),
        (always(http(b'{"choices": [{"message": {"content": "\xff"}}]}')), 20, "not a chat completion"),
        (always(http(b"[]")), 20, "not a chat completion"),
        (always(http(completion([{"type": "text", "text": {"a": 1}}]))), 20, "not a chat completion"),
        (always(http(b'{"error": {"message": "Overloaded", "code": 502}}')), 20, "Overloaded)."),
        (always(http(b'{"error": {"message": "Overloaded", "code": "busy"}}')), 20, "an error with a success status"),
        (
            always(http(b"{}", "Retry-After: 999999", status="429 Too Many Requests")),
            20,
            "keeps refusing because of a rate limit or quota",
        ),
        (always(http(b"y" * MIB, status="500 Oops")), 20, "keeps failing ("),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_is_no_answer_is_said_in_a_short_sentence(
    tmp_path: Path, answering: Callable[[int], Iterable[bytes]], seconds: float, sentence: str
) -> None:
    with serve_raw(answering) as server, pytest.raises(CallsError) as failed:
        asked(server, tmp_path, seconds=seconds)
    assert str(failed.value).startswith("127.0.0.1 ")
    assert sentence in str(failed.value)
    assert len(str(failed.value)) < 400
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "answering",
    [
        pytest.param(always(http(completion("x" * 10 * MIB))), id="10 MiB"),
        pytest.param(blanks, id="gzip of 300 MiB", marks=pytest.mark.heavy),
        pytest.param(endless_chunks, id="chunks without end"),
    ],
)
def test_an_answer_that_is_too_long_is_not_read_to_its_end_and_counts_as_cut_off(
    tmp_path: Path, answering: Callable[[int], Iterable[bytes]]
) -> None:
    with serve_raw(answering) as server:
        answer = asked(server, tmp_path, max_answer_bytes=MIB)
        assert server.sent < 40 * MIB
    assert (answer.outcome, answer.text, answer.finish_reason) == ("length", "", "too long")


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": 10**30, "completion_tokens": 1e300},
        {"prompt_tokens": "many", "completion_tokens": [3]},
        {"completion_tokens": None},
        {"prompt_tokens_details": {"cached_tokens": -1}},
        {},
        None,
        [],
        "none",
    ],
    ids=repr,
)
def test_numbers_of_tokens_that_are_missing_or_cannot_be_are_recorded_as_none(tmp_path: Path, usage: object) -> None:
    with serve_raw(always(http(completion(usage=usage)))) as server:
        answer = asked(server, tmp_path)
    assert answer.outcome == "answer"
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (0, 0, 0)


def test_a_reply_without_choices_is_empty_and_stops_nothing(tmp_path: Path) -> None:
    blocked = {"id": "1", "object": "chat.completion", "model": "m", "choices": [], "usage": {"prompt_tokens": 7}}
    with serve_raw(always(http(json.dumps(blocked).encode()))) as server:
        answer = asked(server, tmp_path)
    assert (answer.outcome, answer.prompt_tokens, answer.completion_tokens) == ("empty", 7, 0)


@pytest.mark.parametrize(
    "more",
    [
        {"model": ["a", {"b": 1}]},
        {"finish_reason": "z" * 5000},
        {"model": "half \ud83d"},
        {"content": "half \ud83d"},
    ],
    ids=ascii,
)
def test_a_field_of_another_type_or_size_is_recorded_as_a_short_text(tmp_path: Path, more: dict[str, object]) -> None:
    with serve_raw(always(http(completion(**more)))) as server:
        answer = asked(server, tmp_path)
    assert answer.outcome == "answer"
    assert all(0 < len(text) <= 200 for text in (answer.model, answer.finish_reason))


def test_redirects_are_not_followed_and_the_key_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    with serve(lambda *_: Reply()) as elsewhere:
        where = f"{elsewhere.base_url}/chat/completions"
        with (
            serve_raw(always(http(b"", f"Location: {where}", status="307 Temporary Redirect"))) as server,
            pytest.raises(CallsError, match=f"127.0.0.1 redirects to {where}, which is not followed"),
        ):
            asked(server, tmp_path, api_key_env=VARIABLE)
    assert elsewhere.requests == []


ESCAPED = json.dumps(KEY)[1:-1]


@pytest.mark.parametrize(
    "body",
    [
        completion(f"Your key is {KEY}."),
        completion([{"type": "text", "text": KEY[:9]}, {"type": "text", "text": KEY[9:]}]),
        completion(json.dumps({"headers": f"Bearer {KEY}"})),
        completion(model=f"m-{KEY}"),
        completion(finish_reason=f"stop {KEY}"),
        completion(finish_reason="z" * 190 + KEY),
        json.dumps(
            {
                "model": "m",
                "choices": [{"message": {"content": None, "refusal": f"No, {KEY}"}, "finish_reason": "stop"}],
            }
        ).encode(),
    ],
    ids=["text", "parts", "JSON in the text", "model", "finish reason", "at a cut", "refusal"],
)
def test_a_key_that_comes_back_is_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    with serve_raw(always(http(body))) as server:
        answer = asked(server, tmp_path, api_key_env=VARIABLE)
    assert f"Bearer {KEY}".encode() in server.requests[0]
    kept = repr(answer) + str(read_ledger(tmp_path / "ledger").rows())
    assert "[key]" in kept
    for form in (KEY, ESCAPED, KEY[:9]):
        assert form not in kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://somebody:hunter22@proxy.example:port"),
        ("HTTPS_PROXY", "ftp://somebody:hunter22@proxy.example:80"),
        ("HTTPS_PROXY", "http://somebody:hunter22@[::1"),
        ("ALL_PROXY", "socks5://somebody:hunter22@proxy.example:80"),
        ("SSL_CERT_FILE", "/nowhere/at/all"),
    ],
)
def test_an_environment_that_the_client_cannot_take_is_named_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for other in ("HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    with Ledger(tmp_path / "ledger") as ledger, pytest.raises(CallsError) as failed:
        ask([question()], ledger, OpenAIChat("https://example.org/v1"))
    sentence = str(failed.value)
    assert sentence.startswith("No connection to example.org can be set up (")
    assert "somebody" not in sentence
    assert "hunter22" not in sentence


def test_a_host_that_there_is_not_is_tried_twice_and_one_that_was_there_again_and_again(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError, match=r"nowhere\.invalid cannot be reached \(.*\), in 2 tries\."):
            ask([question()], ledger, OpenAIChat("http://nowhere.invalid/v1"))
        with serve(lambda *_: Reply()) as server:
            chat = OpenAIChat(server.base_url, max_retries=2)
            ask([question("first")], ledger, chat)
        with pytest.raises(CallsError, match=r"127\.0\.0\.1 cannot be reached \(.*\), in 3 tries\."):
            ask([question("second")], ledger, chat)


def test_an_answer_that_is_too_long_is_told_from_one_at_the_token_limit(tmp_path: Path) -> None:
    def parse(_: str, text: str) -> str:
        raise InvalidAnswer(text)

    def long_or_cut(number: int) -> Iterable[bytes]:
        return [http(completion("x" * MIB) if number == 0 else completion("cut", finish_reason="length"))]

    with serve_raw(long_or_cut) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url, max_retries=0, max_answer_bytes=9_999)
        one_by_one = Limits(concurrency=1)
        settled = ask_until_valid(
            ["a", "b"], lambda item, _: question(item), parse, ledger, chat, attempts=1, limits=one_by_one
        )
    assert [one.reason for one in settled] == ["longer than an answer may be", "cut off at the token limit"]


def test_tokens_that_nobody_says_count_as_the_most_under_a_ceiling(tmp_path: Path) -> None:
    requests = [question(str(number), max_tokens=1000) for number in range(9)]
    limits = Limits(price=Price(output=1000.0), max_cost=3.5)  # a dollar for the most tokens of each
    with serve_raw(always(http(completion()))) as server, Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError):
            ask(requests, ledger, OpenAIChat(server.base_url), limits=limits)
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [("401 No", {"error": {"message": f"{'k' * 190} {KEY}"}}), ("500 Oops", {"detail": f"{'k' * 150}{KEY}"})],
)
def test_a_key_is_in_no_sentence_not_even_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, body: object
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    reply = http(json.dumps(body).encode(), status=status)
    with serve_raw(always(reply)) as server, pytest.raises(CallsError) as failed:
        asked(server, tmp_path, api_key_env=VARIABLE)
    assert KEY[:6] not in str(failed.value)
