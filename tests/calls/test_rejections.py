"""What a server does not take: a parameter is sent as it takes it, and a form that it never takes stops the run."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from asking import question
from chat_server import Reply, refused_by_reasoning, serve
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import (
    Answer,
    Backend,
    CallsError,
    FileBackend,
    InvalidAnswer,
    Ledger,
    Limits,
    OpenAIChat,
    Request,
    ask,
    ask_until_valid,
)

ONE_BY_ONE = Limits(concurrency=1)
SAMPLING: dict[str, Any] = {"temperature": 0.0, "top_p": 0.9, "max_tokens": 7}
ADAPTED = "max_tokens as max_completion_tokens, without temperature, without top_p"


def text_of(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def reasoning(body: dict[str, Any], _: int) -> Reply:
    return refused_by_reasoning(body) or Reply("fine")


def rejected(message: str, requests: list[Request], ledger: Ledger, chat: OpenAIChat, **options: Any) -> None:
    """Asking stops with what the server said, and with what becomes of the run."""
    with pytest.raises(CallsError) as stopped:
        ask(requests, ledger, chat, label="votes", **options)
    assert stopped.value.exit_status == 2
    assert str(stopped.value) == (
        f"127.0.0.1 rejects these requests: {message} "
        f"0 of {len(requests)} votes are recorded; rerun the same command to resume."
    )


def test_what_a_model_refuses_is_sent_as_it_takes_it_from_then_on(tmp_path: Path) -> None:
    requests = [question(str(number), **SAMPLING, seed=5) for number in range(4)]
    with serve(reasoning) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        answers = ask(requests[:3], ledger, chat, limits=ONE_BY_ONE)
        answers += ask(requests[3:], ledger, chat)
        assert ledger.find(request.key for request in requests) == {answer.key: answer for answer in answers}
    assert [answer.key for answer in answers] == [request.key for request in requests]
    assert {(answer.outcome, answer.adapted) for answer in answers} == {("answer", ADAPTED)}
    assert [text_of(body) for body in server.requests] == ["0", "0", "0", "0", "1", "2", "3"]
    for body in server.requests[3:]:
        assert body.keys() == {"model", "messages", "max_completion_tokens", "seed"}
        assert body["max_completion_tokens"] == 7


def test_what_one_model_refuses_another_is_still_sent(tmp_path: Path) -> None:
    def by_model(body: dict[str, Any], number: int) -> Reply:
        return reasoning(body, number) if body["model"] == "reasoning" else Reply()

    with serve(by_model) as server, Ledger(tmp_path / "ledger") as ledger:
        requests = [question("a", model=name, temperature=0.0) for name in ("reasoning", "plain")]
        answers = ask(requests, ledger, OpenAIChat(server.base_url), limits=ONE_BY_ONE)
    assert [answer.adapted for answer in answers] == ["without temperature", ""]
    assert "temperature" in server.requests[-1]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        'This server does not support "max_tokens".',
        "`max_tokens` is deprecated for this model.",
    ],
)
def test_the_sentence_alone_may_name_the_parameter(tmp_path: Path, message: str) -> None:
    def refuse(body: dict[str, Any], _: int) -> Reply:
        return Reply(message, status=400) if "max_tokens" in body else Reply()

    with serve(refuse) as server, Ledger(tmp_path / "ledger") as ledger:
        [answer] = ask([question("a", max_tokens=7)], ledger, OpenAIChat(server.base_url))
    assert (answer.outcome, answer.adapted) == ("answer", "max_tokens as max_completion_tokens")


OTHERS = {  # what servers that are not OpenAI's say of a parameter that they do not take, and in which form
    "fastapi": {"detail": [{"loc": ["body", "temperature"], "msg": "extra fields not permitted", "type": "extra"}]},
    "pydantic": {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]},
    "detail": {"detail": "Unsupported parameter: temperature"},
    "error": {"error": "temperature: Extra inputs are not permitted"},
    "google": [{"error": {"code": 400, "message": "temperature is not supported."}}],
    "text": "Unsupported parameter `temperature`",
}
REASONS = {
    "fastapi": ({"detail": [{"loc": ["body", "messages", 0], "msg": "too odd"}]}, "messages.0: too odd"),
    "detail": ({"detail": "too odd"}, "too odd"),
    "error": ({"error": "too odd"}, "too odd"),
    "text": ("too odd", "too odd"),
    "deep": ({"error": {"error": {"error": {"error": {"error": {"error": {"error": "x"}}}}}}}, "Error code: 422"),
}


@pytest.mark.parametrize("form", OTHERS)
@pytest.mark.parametrize("way", ["sent", "imported"])
def test_a_parameter_that_another_server_refuses_in_its_own_words_is_left_out(
    tmp_path: Path, form: str, way: str
) -> None:
    def refuse(body: dict[str, Any], _: int) -> Reply:
        return Reply(status=422, body=OTHERS[form]) if "temperature" in body else Reply()

    request = question("a", temperature=0.0)
    row = {"custom_id": request.key, "response": {"status_code": 422, "body": OTHERS[form]}, "error": None}
    (tmp_path / "results.jsonl").write_text(json.dumps(row))
    with serve(refuse) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        files = FileBackend(chat, pending=tmp_path / "calls.jsonl", results=[tmp_path / "results.jsonl"])
        if way == "sent":
            assert ask([request], ledger, chat)[0].adapted == "without temperature"
            return
        with pytest.raises(CallsError, match="are written to"):
            ask([request], ledger, files)
    assert "temperature" not in json.loads((tmp_path / "calls.jsonl").read_text())["body"]


@pytest.mark.parametrize("form", REASONS)
@pytest.mark.parametrize("status", [422, 500, 404])
def test_the_reason_of_a_server_is_told_whatever_its_form(tmp_path: Path, form: str, status: int) -> None:
    body, reason = REASONS[form]
    with (
        serve(lambda *_: Reply(status=status, body=body)) as server,
        Ledger(tmp_path / "ledger") as ledger,
        pytest.raises(CallsError) as stopped,
    ):
        ask([question("a")], ledger, OpenAIChat(server.base_url, max_retries=0))
    assert reason.replace("422", str(status)) in str(stopped.value)


@pytest.mark.parametrize(
    ("message", "parameter", "times"),
    [
        ("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3.", "temperature", 1),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", "max_tokens", 1),
        ("Unsupported parameter: 'presence_penalty' is not supported with this model.", "presence_penalty", 1),
        ("Images are not supported.", None, 1),
        ("Unsupported parameter: 'temperature' is not supported.", None, 2),  # also once it is left out
    ],
)
def test_a_value_or_another_parameter_that_is_wrong_is_not_left_out(
    tmp_path: Path, message: str, parameter: str | None, times: int
) -> None:
    reply = Reply(message, status=400, error={"param": parameter, "code": "invalid_value"})
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        request = question("a", **SAMPLING, presence_penalty=True)
        rejected(message, [request], ledger, OpenAIChat(server.base_url))
    assert len(server.requests) == times


def test_a_model_without_a_system_role_is_told_of_other_prompts(tmp_path: Path) -> None:
    reply = Reply("System role not supported", status=400)
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        message = "System role not supported; use a prompt without a system message."
        rejected(message, [question("a")], ledger, OpenAIChat(server.base_url))


@pytest.mark.parametrize(
    ("status", "requests", "concurrency", "most"), [(400, 9, 1, 3), (413, 12, 4, 6), (422, 2, 1, 2), (400, 1, 8, 1)]
)
def test_requests_that_are_all_rejected_stop_the_run_and_none_is_recorded(
    tmp_path: Path, status: int, requests: int, concurrency: int, most: int
) -> None:
    asked = [question(str(number)) for number in range(requests)]
    with Ledger(tmp_path / "ledger") as ledger:
        with serve(lambda *_: Reply("Unknown parameter: 'mood'.", status=status)) as server:
            limits = Limits(concurrency=concurrency)
            rejected("Unknown parameter: 'mood'.", asked, ledger, OpenAIChat(server.base_url), limits=limits)
        assert len(ledger) == 0
        assert not ledger.has_new_calls, "a run that recorded nothing binds no later one"
        assert len(server.requests) <= most
        with serve(lambda *_: Reply()) as mended:
            answers = ask(asked, ledger, OpenAIChat(mended.base_url))
    assert {answer.outcome for answer in answers} == {"answer"}


def test_a_later_attempt_that_is_rejected_is_one_item_s_trouble(tmp_path: Path) -> None:
    def request(item: str, attempt: int) -> Request:
        return question(item, temperature=float(attempt))

    def parse(_: str, text: str) -> str:
        if text != "good":
            raise InvalidAnswer("bad")
        return text

    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply("too warm", status=400) if body["temperature"] else Reply(text_of(body))

    with serve(script) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        settled = ask_until_valid(["good", "bad"], request, parse, ledger, chat, attempts=3)
    assert [(one.value, one.reason, one.attempts) for one in settled] == [
        ("good", "", 1),
        (None, "rejected by the server", 2),
    ]


def test_a_request_that_is_too_large_is_recorded_beside_one_that_is_not(tmp_path: Path) -> None:
    def small_alone(body: dict[str, Any], _: int) -> Reply:
        return Reply() if text_of(body) == "short" else Reply("too large", status=413)

    with serve(small_alone) as server, Ledger(tmp_path / "ledger") as ledger:
        [answer, _] = ask([question("long"), question("short")], ledger, OpenAIChat(server.base_url))
        assert (answer.outcome, answer.finish_reason, answer.text) == ("error", "413", "too large")
        [alone] = ask([question("long too")], ledger, OpenAIChat(server.base_url))
        assert alone.outcome == "error", "the server takes others of the run"


def test_a_text_that_a_content_filter_rejects_is_no_wrong_request(tmp_path: Path) -> None:
    filtered = Reply("The prompt was filtered.", status=400, error={"code": "content_filter", "param": "prompt"})
    with serve(lambda *_: filtered) as server, Ledger(tmp_path / "ledger") as ledger:
        answers = ask([question(str(number)) for number in range(4)], ledger, OpenAIChat(server.base_url))
    assert {answer.outcome for answer in answers} == {"content_filter"}


def test_a_published_ledger_has_the_column_only_where_it_says_something(tmp_path: Path) -> None:
    with serve(reasoning) as server, Ledger(tmp_path / "ledger") as ledger:
        answers = ask([question("a"), question("b", max_tokens=3)], ledger, OpenAIChat(server.base_url))
        for answer in answers:
            ledger.export(tmp_path / f"{answer.adapted or 'plain'}.parquet", [answer.key])
    assert {"adapted", "cached_tokens"}.isdisjoint(pl.read_parquet_schema(tmp_path / "plain.parquet"))
    assert len([path for path in tmp_path.glob("*.parquet") if "adapted" in pl.read_parquet_schema(path)]) == 1


class Picky(Backend):
    """A backend in this process that takes some of the requests, each after its own time."""

    concurrency: int | None = None

    def __init__(self, plan: list[tuple[bool, int]]) -> None:
        self.plan, self.asked = plan, set[int]()

    async def send(self, request: Request) -> Answer:
        number = int(text_of(dict(request.body)))
        self.asked.add(number)
        taken, turns = self.plan[number]
        for _ in range(turns):
            await asyncio.sleep(0)
        return Answer.to(request, *(("answer", "fine") if taken else ("error", "odd")), finish_reason="400")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=12), st.integers(1, 5))
def test_all_is_recorded_as_it_is_or_nothing_was_answered(plan: list[tuple[bool, int]], concurrency: int) -> None:
    requests, picky = [question(str(number)) for number in range(len(plan))], Picky(plan)
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        try:
            answers = ask(requests, ledger, picky, limits=Limits(concurrency=concurrency))
        except CallsError:
            assert not any(plan[number][0] for number in picky.asked)
            assert min(3, len(plan)) <= len(picky.asked) <= concurrency + 3
            assert len(ledger) == 0
        else:
            assert [(answer.outcome == "answer") for answer in answers] == [taken for taken, _ in plan]
            assert len(ledger) == len(plan)
