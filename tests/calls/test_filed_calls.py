"""Calls as files: what is written, what comes back, and what a file of results cannot do."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from asking import question
from batch_results import Kind, result, work_through
from chat_server import Reply, refused_by_reasoning, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import (
    Answer,
    CallsError,
    CallsPending,
    ChatModel,
    ConnectionConfig,
    Interrupted,
    Ledger,
    OpenAIChat,
    PermanentError,
    Request,
    ask,
    chat_backend,
)
from pluralbench_calls.batches.files import UNKNOWN, batch_lines, read_results, write_batches

MODEL = ChatModel(provider="127.0.0.1", model="m")
NO_SERVER = "http://127.0.0.1:9/v1"
EXPIRED = Reply("It did not come to it.", status=0)


def three() -> list[Request]:
    return [question(f"{number}?") for number in range(3)]


def write_results(path: Path, replies: dict[str, Reply], kind: Kind = "openai") -> Path:
    path.write_text("".join(json.dumps(result(key, reply, kind)) + "\n" for key, reply in replies.items()), "utf-8")
    return path


def filed(folder: Path, requests: Sequence[Request], *results: Path, pending: bool = True) -> list[Answer]:
    """Ask by files in a folder, with no server."""
    connection = ConnectionConfig(
        base_url=NO_SERVER, max_retries=0, pending=folder / "calls.jsonl" if pending else None, results=results
    )
    with Ledger(folder / "ledger.sqlite") as ledger:
        return ask(requests, ledger, chat_backend(MODEL, connection), label="answers")


def message(folder: Path, kind: type[CallsError], requests: Sequence[Request], *results: Path) -> str:
    """How asking stops."""
    with pytest.raises(kind) as stopped:
        filed(folder, requests, *results)
    return str(stopped.value).replace(f"{folder}/", "")


def written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "calls.jsonl").read_bytes().splitlines()]


def recorded(folder: Path) -> int:
    with Ledger(folder / "ledger.sqlite") as ledger:
        return len(ledger)


def test_what_is_missing_is_written_and_what_came_is_taken_once(tmp_path: Path) -> None:
    requests = three()
    assert message(tmp_path, CallsPending, requests) == (
        "The missing answers are written to calls.jsonl (3 calls). Run them, then rerun the same command with "
        "`connection.results=...`. 0 of 3 answers are recorded."
    )
    assert CallsPending.exit_status == 75
    assert written(tmp_path)[1] == {
        "custom_id": requests[1].key,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "messages": [{"role": "user", "content": "1?"}]},
    }
    some = write_results(tmp_path / "some.jsonl", {requests[0].key: Reply("one")})
    for _ in range(2):  # a file taken twice changes nothing
        assert "1 of 3 answers are recorded" in message(tmp_path, CallsPending, requests, some)
        assert [line["custom_id"] for line in written(tmp_path)] == [requests[1].key, requests[2].key]
    rest = work_through(tmp_path / "calls.jsonl", tmp_path / "rest.jsonl", lambda body, _: Reply(f"{body}"))
    answers = filed(tmp_path, requests, some, rest)
    assert [answer.outcome for answer in answers] == ["answer"] * 3
    assert answers[0].text == "one"
    assert filed(tmp_path, requests) == answers


def test_a_folder_of_results_is_all_that_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    message(tmp_path, CallsPending, three(), folder)
    assert capsys.readouterr().err.endswith("/results has no results yet (no .jsonl files).\n")
    for request in three():
        write_results(folder / f"{request.key}.jsonl", {request.key: Reply("fine")})
    assert len(filed(tmp_path, three(), folder)) == 3


def test_without_pending_the_rest_is_sent(tmp_path: Path) -> None:
    some = write_results(tmp_path / "some.jsonl", {three()[0].key: Reply("one")})
    with serve(lambda *_: Reply("sent")) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        connection = ConnectionConfig(base_url=server.base_url, results=(some,))
        answers = ask(three(), ledger, chat_backend(MODEL, connection))
    assert [answer.text for answer in answers] == ["one", "sent", "sent"]
    assert len(server.requests) == 2


KINDS: list[Kind] = ["openai", "vllm"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_read_as_the_same_reply_of_a_server(tmp_path: Path, kind: Kind) -> None:
    replies = [
        Reply("fine"),
        Reply(""),
        Reply(None),
        Reply("I cannot.", refusal="No."),
        Reply("cut", finish_reason="length"),
        Reply("stopped", finish_reason="content_filter"),
        Reply("too long", status=400),
        Reply("cannot be processed", status=422),
        Reply("filtered", status=400, error={"code": "content_filter"} if kind == "openai" else {}),
    ]
    requests = [question(f"{number}?") for number in range(len(replies))]
    with serve(lambda body, _: replies[int(body["messages"][0]["content"][:-1])]) as server:

        async def live() -> list[Answer]:
            async with OpenAIChat(server.base_url) as chat:
                return [await chat.send(request) for request in requests]

        sent = asyncio.run(live())
    path = write_results(tmp_path / "r.jsonl", dict(zip([r.key for r in requests], replies, strict=True)), kind)
    came = [one.answer for one in read_results([path], {request.key: request for request in requests})]
    assert [answer and replace(answer, recorded_at="") for answer in came] == [
        replace(answer, recorded_at="") for answer in sent
    ]


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        (EXPIRED, "openai", "It did not come to it"),
        (Reply("no reason", status=400), "aibrix", "no reason"),
        (Reply("out of order", status=500), "openai", "out of order (status 500)"),
        (Reply("no such model", status=404), "vllm", "no such model (status 404)"),
        (Reply("slow down", status=429), "openai", "slow down (status 429)"),
    ],
)
def test_what_was_not_answered_is_asked_again_but_not_for_ever(
    tmp_path: Path, reply: Reply, kind: Kind, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = three()
    keys = [request.key for request in requests]
    one = write_results(tmp_path / "one.jsonl", {keys[0]: Reply("fine"), keys[1]: reply}, kind)
    message(tmp_path, CallsPending, requests, one)
    assert capsys.readouterr().err == f"1 result is not usable, and will be requested again: {why}.\n"
    two = write_results(tmp_path / "two.jsonl", {keys[1]: reply, keys[2]: reply}, kind)
    assert message(tmp_path, PermanentError, requests, two) == (
        f"The results have no new answer ({why}); fix the cause before you run the calls again. The "
        "missing answers are written to calls.jsonl (2 calls). 1 of 3 answers are recorded."
    )


def test_what_a_model_refuses_is_left_out_of_what_is_written_next(tmp_path: Path) -> None:
    requests = [question("1?", max_tokens=7, temperature=0.5), question("2?", max_tokens=7)]
    later = question("3?", max_tokens=9, temperature=0.5)
    for number in range(3):
        message(tmp_path, CallsPending, requests, *([tmp_path / f"{number - 1}.jsonl"] if number else []))
        work_through(
            tmp_path / "calls.jsonl",
            tmp_path / f"{number}.jsonl",
            lambda body, _: refused_by_reasoning(body) or Reply("fine"),
        )
    answers = filed(tmp_path, requests, tmp_path / "2.jsonl", tmp_path / "1.jsonl")
    assert [answer.adapted for answer in answers] == [
        "max_tokens as max_completion_tokens, without temperature",
        "max_tokens as max_completion_tokens",
    ]
    message(tmp_path, CallsPending, [later])
    [line] = written(tmp_path)
    assert line["custom_id"] == later.key
    assert line["body"].keys() == {"model", "messages", "max_completion_tokens"}


def test_results_of_another_build_are_refused_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = question("of another build")
    foreign = write_results(tmp_path / "f.jsonl", {other.key: Reply("fine")})
    assert message(tmp_path, PermanentError, three(), foreign) == (
        f"None of the 1 results in f.jsonl belongs to a call of this command (one is of {other.key[:12]}…); are "
        "they of another build, or of other settings? 0 of 3 answers are recorded."
    )
    mixed = write_results(tmp_path / "m.jsonl", {other.key: Reply("fine"), three()[0].key: Reply("fine")})
    message(tmp_path, CallsPending, three(), mixed)
    assert capsys.readouterr().err == (
        f"1 of 2 results belong to other calls, such as {other.key[:12]}…, and are ignored.\n"
    )
    assert recorded(tmp_path) == 1


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"custom_id": "', "this is not JSON ("),
        ("[]", "this is not a result of a batch; it has no `custom_id`."),
        ('{"response": null}', "this is not a result of a batch; it has no `custom_id`."),
        ('{"custom_id": "x"}', "this is not a result; it has no `response`."),
        (next(batch_lines(three())).decode(), "this is a call and not its result; run the calls first."),
    ],
)
def test_a_line_that_is_no_result_is_named_and_nothing_is_taken(tmp_path: Path, line: str, fault: str) -> None:
    results = write_results(tmp_path / "r.jsonl", {three()[0].key: Reply("fine")})
    with results.open("a") as file:
        file.write(f"\n{line}")
    assert message(tmp_path, PermanentError, three(), results).startswith(f"r.jsonl, line 3: {fault}")
    assert recorded(tmp_path) == 0


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    assert message(tmp_path, PermanentError, three(), tmp_path / "none").startswith("The results none cannot be read: ")
    (tmp_path / "calls.jsonl").write_text('{"text": "mine"}')
    assert message(tmp_path, PermanentError, three()).startswith(
        "calls.jsonl exists and is not a file of calls; choose another name."
    )
    assert (tmp_path / "calls.jsonl").read_text() == '{"text": "mine"}'
    with pytest.raises(PermanentError, match=r"^The calls cannot be written to .*: .*No such file or directory"):
        write_batches(three(), tmp_path / "no" / "folder.jsonl")
    with pytest.raises(PermanentError, match=r"^A call has \d+ bytes; the maximum for a batch is 10\.$"):
        write_batches(three(), tmp_path / "small.jsonl", max_bytes=10)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("small")] == []


@pytest.mark.parametrize("dies", range(6))
def test_a_stop_at_any_place_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int) -> None:
    requests = [question(f"{number}?", max_tokens=7) for number in range(3)]
    replace_file, record = Path.replace, Ledger.record
    left = dies

    def stops() -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise KeyboardInterrupt

    def replacing(self: Path, target: Path) -> Path:
        stops()
        return replace_file(self, target)

    def recording(self: Ledger, *answers: Answer) -> None:
        stops()
        record(self, *answers)
        stops()

    monkeypatch.setattr(Path, "replace", replacing)
    monkeypatch.setattr(Ledger, "record", recording)
    results = tmp_path / "results"
    results.mkdir()
    stopped = 0
    for number in range(8):
        try:
            answers = filed(tmp_path, requests, results)
        except Interrupted:
            stopped += 1
            continue
        except CallsPending:
            calls, came = tmp_path / "calls.jsonl", results / f"{number}.jsonl"
            work_through(calls, came, lambda body, _: refused_by_reasoning(body) or Reply(f"{body['messages']}"))
            continue
        break
    assert stopped == (left < 0)
    assert [answer.text for answer in answers] == [str(request.body["messages"]) for request in requests]
    assert {answer.adapted for answer in answers} == {"max_tokens as max_completion_tokens"}
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(
    asked=st.lists(
        st.builds(
            question,
            TEXTS,
            model=st.sampled_from(["m", "模型"]),
            sample=st.integers(0, 2),
            temperature=st.floats(0, 2),
        ),
        unique_by=lambda request: request.key,
        max_size=12,
    ),
    replies=st.lists(
        st.builds(
            Reply,
            TEXTS,
            status=st.sampled_from([200, 200, 200, 400, 500, 0]),
            finish_reason=st.sampled_from(["stop", "length"]),
        ),
        min_size=12,
        max_size=12,
    ),
    kind=st.sampled_from(["openai", "vllm", "aibrix"]),
    most=st.integers(1, 5),
    most_bytes=st.integers(600, 2_000),
    data=st.data(),
)
@settings(max_examples=40)
def test_every_call_comes_back_as_what_came_of_it(
    asked: list[Request], replies: list[Reply], kind: Kind, most: int, most_bytes: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = write_batches(asked, Path(folder) / "c.jsonl", max_requests=most, max_bytes=most_bytes)
        lines = [path.read_bytes().splitlines(keepends=True) for path in paths]
        assert all(0 < len(part) <= most and sum(map(len, part)) <= most_bytes for part in lines)
        rows = [[json.loads(line) for line in part] for part in lines]
        assert all(len({row["body"]["model"] for row in part}) == 1 for part in rows)
        keys = [row["custom_id"] for row in chain(*rows)]
        assert sorted(keys) == sorted(request.key for request in asked)
        of = dict(zip(keys, replies, strict=False))
        results = Path(folder) / "r.jsonl"
        write_results(results, {key: of[key] for key in data.draw(st.permutations(keys))}, kind)
        pending = {request.key: request for request in asked if data.draw(st.booleans())}
        came = {one.key: one for one in read_results([results], pending)}
    assert came.keys() == of.keys()
    for key, reply in of.items():
        if key not in pending:
            assert (came[key].answer, came[key].reason) == (None, UNKNOWN)
            continue
        answer = came[key].answer
        if reply.status in {0, 500} or (kind == "aibrix" and reply.status != 200):
            assert answer is None
            assert came[key].reason
        elif reply.status == 400:
            assert answer is not None
            assert (answer.outcome, answer.finish_reason) == ("error", "400")
        else:
            assert answer is not None
            assert (answer.key, answer.text) == (key, reply.text)
