"""Calls through a Batch API: what comes back is recorded as if it was asked for directly, and nothing is paid twice."""

import asyncio
import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, Fault, Plan, at, says_back, serve_batches
from chat_server import Reply, refused_by_reasoning
from pluralbench_calls import CallsError, Interrupted, Ledger, Limits, OpenAIChat, Price, Request, ask
from pluralbench_calls.backends import bounded
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.file_backend import FileBackend
from pluralbench_calls.batches.files import BatchStore

CALLS = 5
GONE = Fault(404, text="Batch not found")


def requests(number: int = CALLS, **body: Any) -> list[Request]:
    return [
        Request("chat", "127.0.0.1", "m", {"messages": [{"role": "user", "content": f"{index} 问题"}], **body})
        for index in range(number)
    ]


def backend(server: BatchServer, **options: Any) -> OpenAIBatches:
    return OpenAIBatches(server.base_url, first_pause=0.001, longest_pause=0.002, max_retries=2, **options)


def asked(
    server: BatchServer, folder: Path, number: int = CALLS, *, limits: Limits | None = None, **options: Any
) -> Any:
    folder.mkdir(exist_ok=True)
    with Ledger(folder / "ledger.sqlite") as ledger:
        return ask(requests(number), ledger, backend(server, **options), limits=limits, label="questions")


def fields_of(answers: Any) -> list[tuple[object, ...]]:
    return [(a.key, a.text, a.outcome, a.finish_reason, a.model, a.prompt_tokens, a.adapted) for a in answers]


def directly(server: BatchServer, folder: Path) -> list[tuple[object, ...]]:
    with Ledger(folder / "direct.sqlite") as ledger:
        return fields_of(ask(requests(), ledger, OpenAIChat(server.base_url)))


def test_a_batch_gives_what_direct_calls_give_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with serve_batches() as server:
        assert fields_of(asked(server, tmp_path)) == directly(server, tmp_path)
        assert [len(lines) for lines in server.inputs()] == [CALLS]
    assert not (tmp_path / "ledger.batches").exists()


class Killed(BaseException):
    """The process ends here, whatever it is about to do."""


def killing(patch: pytest.MonkeyPatch, moment: int) -> None:
    """Die at this moment: before or after any request, or before what is known of a batch is written or removed."""
    moments = count()

    def live() -> None:
        if next(moments) == moment:
            raise Killed

    send, save, forget = bounded.BoundedClient.send, BatchStore.save, BatchStore.remove

    async def sending(self: Any, *args: Any, **options: Any) -> Any:
        live()
        response = await send(self, *args, **options)
        live()
        return response

    def saving(self: Any, kept: Any) -> Any:
        live()
        return save(self, kept)

    def forgetting(self: Any, kept: Any) -> None:
        live()
        forget(self, kept)
        live()

    patch.setattr(bounded.BoundedClient, "send", sending)
    patch.setattr(BatchStore, "save", saving)
    patch.setattr(BatchStore, "remove", forgetting)


def plans() -> Iterator[Plan]:
    yield Plan("expired", finished=2, statuses=())
    while True:
        yield Plan(statuses=("in_progress",))


@pytest.mark.heavy
def test_killed_at_any_moment_nothing_is_paid_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what dies here is a process, and not the machine
    with serve_batches() as server:
        whole = directly(server, tmp_path)
    for moment in count():
        following = plans()
        with serve_batches(lambda _, following=following: next(following)) as server:  # type: ignore[misc]
            folder = tmp_path / str(moment)
            with monkeypatch.context() as patch:
                killing(patch, moment)
                try:
                    asked(server, folder)
                except Killed:
                    died = True
                else:
                    died = False
            assert fields_of(asked(server, folder)) == whole
            assert {*server.worked.values()} == {1}, (moment, server.steps)
        if not died:
            break
    assert moment > 20


def test_what_expires_or_is_cancelled_goes_out_again_and_not_for_ever(tmp_path: Path) -> None:
    ends = [Plan("expired", 2, statuses=()), Plan("cancelled", 1, statuses=()), Plan(statuses=())]
    with serve_batches(lambda number: ends[number]) as server:
        assert len(asked(server, tmp_path)) == CALLS
        assert [len(lines) for lines in server.inputs()] == [5, 3, 2]
    with (
        serve_batches(lambda _: Plan("expired", 0, statuses=())) as server,
        pytest.raises(CallsError, match="left 5 calls unanswered in the batch batch_2, which is expired"),
    ):
        asked(server, tmp_path / "never")


def test_a_lost_answer_to_create_is_looked_up(tmp_path: Path) -> None:
    with serve_batches(fault=at("POST /batches", Fault(done=True), times=1)) as server:
        asked(server, tmp_path)
        assert {*server.worked.values()} == {1}
        assert len(server.batches) == 1


@pytest.mark.parametrize(("status", "text"), [(200, "so"), (200, "<html>"), (404, "no")])
def test_where_no_list_says_it_nobody_guesses(tmp_path: Path, status: int, text: str) -> None:
    lost, no_list = at("POST /batches", Fault(done=True), times=1), at("GET /batches", Fault(status, text=text))
    with serve_batches(fault=lambda *asked: lost(*asked) or no_list(*asked)) as server:
        for _ in range(2):
            with pytest.raises(
                CallsError, match="does not list its batches, so the batch of the file file-0 may or may not exist"
            ):
                asked(server, tmp_path)
        assert len(server.batches) == 1


def test_a_rate_limit_on_create_is_waited_for(tmp_path: Path) -> None:
    limited = Fault(429, headers={"Retry-After": "0.001"})
    with serve_batches(fault=at("POST /batches", limited, times=2)) as server:
        asked(server, tmp_path)
        assert server.steps.count("POST /batches") == 3
        assert "GET /batches" not in server.steps


def test_a_batch_that_fails_names_its_first_error_and_goes_out_again_once_mended(tmp_path: Path) -> None:
    wrong = {"code": "invalid_json", "line": 3, "message": "This line is not JSON.", "param": None}
    ends = [Plan("failed", errors=[wrong, wrong]), Plan()]
    with serve_batches(lambda number: ends[number]) as server:
        with pytest.raises(CallsError) as failed:
            asked(server, tmp_path)
        assert str(failed.value) == (
            "127.0.0.1 refuses the batch batch_0: This line is not JSON. 0 of 5 questions are recorded; rerun the "
            "same command to resume."
        )
        assert len(asked(server, tmp_path)) == CALLS


def test_what_the_model_refuses_is_left_out_of_the_next_batch(tmp_path: Path) -> None:
    def reasoning(body: dict[str, Any], number: int) -> Reply:
        return refused_by_reasoning(body) or says_back(body, number)

    with serve_batches(script=reasoning) as server, Ledger(tmp_path / "l") as ledger, Ledger(tmp_path / "d") as direct:
        answers = ask(requests(max_tokens=9, temperature=0.5), ledger, backend(server))
        assert fields_of(answers) == fields_of(
            ask(requests(max_tokens=9, temperature=0.5), direct, OpenAIChat(server.base_url))
        )
    assert {answer.adapted for answer in answers} == {"max_tokens as max_completion_tokens, without temperature"}


def test_rejections_are_answers_unless_all_are_rejected(tmp_path: Path) -> None:
    def picky(body: dict[str, Any], number: int) -> Reply:
        return says_back(body, number) if "1" in body["messages"][0]["content"] else Reply("too odd", 400)

    with serve_batches(script=picky) as server:
        assert [a.outcome for a in asked(server, tmp_path)] == ["error", "answer", "error", "error", "error"]
    with (
        serve_batches(script=lambda *_: Reply("too odd", 400)) as server,
        pytest.raises(CallsError, match="rejects these requests: too odd"),
    ):
        asked(server, tmp_path / "all")


def test_calls_that_all_fail_at_the_server_are_not_sent_for_ever(tmp_path: Path) -> None:
    with serve_batches(script=lambda *_: Reply("out of memory", 500)) as server:
        with pytest.raises(CallsError, match=r"5 calls unanswered .* is completed \(out of memory \(status 500\)"):
            asked(server, tmp_path)
        assert len(server.batches) == 1


def test_interrupted_it_names_what_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_batches() as server:
        with monkeypatch.context() as patch:
            wait_for = asyncio.wait_for

            async def ctrl_c(*args: Any) -> Any:
                for task in asyncio.all_tasks():
                    task.cancel()
                return await wait_for(*args)

            patch.setattr(asyncio, "wait_for", ctrl_c)
            with pytest.raises(Interrupted) as interrupted:
                asked(server, tmp_path)
        assert str(interrupted.value) == (
            "Interrupted. The batch continues at 127.0.0.1 (batch_0). 0 of 5 questions are recorded; rerun the "
            "same command to resume."
        )
        asked(server, tmp_path)
        assert len(server.batches) == 1


def test_a_server_without_batches_proposes_files(tmp_path: Path) -> None:
    with (
        serve_batches(fault=at("POST /files", Fault(404, text="Not Found"))) as server,
        pytest.raises(CallsError) as failed,
    ):
        asked(server, tmp_path)
    assert str(failed.value).startswith(
        "127.0.0.1 has no Batch API at this base URL; write the calls to a file with "
        "`connection.pending=...`, run them, for example with vLLM's run_batch, and read the results with "
        "`connection.results=...` (Error code: 404"
    )


def test_another_endpoint_does_not_have_the_batch(tmp_path: Path) -> None:
    with serve_batches(fault=at("GET /batches/ID", GONE)) as server:
        with pytest.raises(CallsError, match=r"has no batch batch_0 any more; remove .*\.json to send"):
            asked(server, tmp_path)
        with serve_batches() as other, pytest.raises(CallsError, match="5 calls are in an open batch at http"):
            asked(other, tmp_path)
        [kept] = (tmp_path / "ledger.batches").iterdir()
        assert json.loads(kept.read_bytes())["batch"] == "batch_0"
        kept.write_text("{", encoding="utf-8")
        with pytest.raises(CallsError, match=r"The state of an open batch, .*, cannot be read"):
            asked(server, tmp_path)


def test_what_is_out_is_not_asked_for_in_another_way(tmp_path: Path) -> None:
    with serve_batches(fault=at("GET /batches/ID", GONE)) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(CallsError, match="has no batch"):
            ask(requests(), ledger, backend(server))
        steps = len(server.steps)
        directly = OpenAIChat(server.base_url)
        for other in (directly, FileBackend(directly, pending=tmp_path / "calls.jsonl")):
            with pytest.raises(
                CallsError, match=r"5 calls are in an open batch at .* resume with `connection.batch=True`, or"
            ):
                ask(requests(), ledger, other)
        assert len(server.steps) == steps
    assert not (tmp_path / "calls.jsonl").exists()


def test_a_file_that_breaks_off_is_fetched_again(tmp_path: Path) -> None:
    cut = Fault(done=True, cut=True)
    with serve_batches(fault=at("GET /files/ID", cut, times=2)) as server:
        assert len(asked(server, tmp_path)) == CALLS
        assert server.steps.count("GET /files/ID") == 3
    with (
        serve_batches(fault=at("GET /files/ID", cut)) as server,
        pytest.raises(CallsError, match="aborts the file batch_0-output_file_id"),
    ):
        asked(server, tmp_path / "always")


def test_what_is_no_reply_of_a_batch_api_is_named(tmp_path: Path) -> None:
    with (
        serve_batches(fault=lambda *_: Fault(200, text="<html>hi</html>")) as server,
        pytest.raises(CallsError, match="sent something that is not a file"),
    ):
        asked(server, tmp_path)


def test_where_one_batch_fails_nobody_waits_for_the_others(tmp_path: Path) -> None:
    going = Plan(statuses=("in_progress",) * 10_000)
    ends = [Plan("failed", errors=[{"message": "no room"}], statuses=("validating",) * 3), going, going]
    with (
        serve_batches(lambda number: ends[number]) as server,
        pytest.raises(CallsError, match="refuses the batch batch_0: no room"),
    ):
        asked(server, tmp_path, max_requests=2)
    assert len([*(tmp_path / "ledger.batches").iterdir()]) == 2


def test_nothing_is_uploaded_that_may_cross_the_ceiling(tmp_path: Path) -> None:
    limits = Limits(price=Price(input=1000.0), max_cost=0.2)
    with serve_batches() as server:
        with pytest.raises(CallsError):
            asked(server, tmp_path, limits=limits)
        assert server.steps == []
        assert not (tmp_path / "ledger.batches").exists()


def test_the_key_is_sent_and_recorded_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASS_OF_MINE", "sk-opens-nothing")
    script = {"0": Reply("your sk-opens-nothing"), "1": Reply("bad sk-opens-nothing", 400)}
    with serve_batches(script=lambda body, _: script[body["messages"][0]["content"][0]]) as server:
        answers = asked(server, tmp_path, 2, api_key_env="PASS_OF_MINE")
    assert [answer.text for answer in answers] == ["your [key]", "bad [key]"]
    assert {*server.keys} == {"Bearer sk-opens-nothing"}
