"""Asking where an event loop runs already, as in a notebook."""

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import question
from chat_server import Reply, serve
from pluralbench_calls import Interrupted, Ledger, Limits, OpenAIChat, ask
from pluralbench_calls.loops import run

ROOM = contextvars.ContextVar("ROOM", default="hall")


def test_asking_inside_a_running_loop_answers_and_records(tmp_path: Path) -> None:
    async def notebook() -> list[str]:
        def echo(body: dict[str, Any], _: int) -> Reply:
            return Reply(f"re: {body['messages'][0]['content']}")

        with serve(echo) as server, Ledger(tmp_path / "ledger") as ledger:
            answers = ask([question("a"), question("乙")], ledger, OpenAIChat(server.base_url))
            assert len(ledger) == 2
        return [answer.text for answer in answers]

    assert asyncio.run(notebook()) == ["re: a", "re: 乙"]


def test_the_work_sees_the_context_of_its_caller_and_only_a_running_loop_costs_a_thread() -> None:
    async def where() -> tuple[str, bool]:
        return ROOM.get(), threading.current_thread() is threading.main_thread()

    async def notebook() -> tuple[str, bool]:
        ROOM.set("library")
        return run(where())

    assert asyncio.run(notebook()) == ("library", False)
    assert run(where()) == ("hall", True)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C on this process, which hears it even where it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("loop", ["none", "a notebook's", "asyncio.run's"])
def test_ctrl_c_says_what_is_recorded_whatever_loop_runs(tmp_path: Path, ctrl_c: Callable[[], None], loop: str) -> None:
    def stop_at_the_fourth(_: object, number: int) -> Reply:
        if number == 3:
            ctrl_c()
        return Reply(delay=0.5 if number == 3 else 0.0)

    message: list[str] = []

    def interrupted(ledger: Ledger, base_url: str) -> str:
        requests = [question(str(number)) for number in range(20)]
        with pytest.raises(Interrupted) as stopped:
            ask(requests, ledger, OpenAIChat(base_url), limits=Limits(concurrency=1))
        assert stopped.value.exit_status == 130
        return str(stopped.value)

    async def inside(ledger: Ledger, base_url: str) -> None:
        message.append(interrupted(ledger, base_url))

    with serve(stop_at_the_fourth) as server, Ledger(tmp_path / "ledger") as ledger:
        match loop:
            case "none":
                message.append(interrupted(ledger, server.base_url))
            case "asyncio.run's":
                with pytest.raises(KeyboardInterrupt):  # which it raises itself in the end
                    asyncio.run(inside(ledger, server.base_url))
            case _:
                with closing(asyncio.new_event_loop()) as running:
                    running.run_until_complete(inside(ledger, server.base_url))
        assert len(ledger) == 4  # the one in flight is paid
    assert message == ["Interrupted. 4 of 20 calls are recorded; rerun the same command to resume."]
    assert len(server.requests) == 4
