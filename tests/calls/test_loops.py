"""Asking where an event loop runs already, as in a notebook."""

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, serve
from commands import environment
from pluralbench_calls import ConnectionFailed, Ledger, OpenAIChat, Request, ask
from pluralbench_calls.loops import run

ROOM = contextvars.ContextVar("ROOM", default="hall")
STOPPED = """
import asyncio, signal, sys
from pathlib import Path
from pluralbench_calls import Interrupted, Ledger, Limits, OpenAIChat, Request, ask

signal.signal(signal.SIGINT, signal.default_int_handler)
requests = [Request("chat", "127.0.0.1", "m", {"messages": [{"role": "user", "content": f"{n}"}]}) for n in range(20)]

async def notebook():
    with Ledger(Path(sys.argv[1])) as ledger:
        try:
            ask(requests, ledger, OpenAIChat(sys.argv[2]), limits=Limits(concurrency=1))
        except Interrupted as stopped:
            print(stopped, len(ledger))
            asyncio.current_task().uncancel()

if sys.argv[3] == "script":
    asyncio.run(notebook())
else:
    asyncio.new_event_loop().run_until_complete(notebook())
"""


def question(text: str) -> Request:
    return Request("chat", "127.0.0.1", "m", {"messages": [{"role": "user", "content": text}]})


def test_asking_inside_a_running_loop_answers_and_records(tmp_path: Path) -> None:
    async def notebook() -> list[str]:
        def echo(body: dict[str, Any], _: int) -> Reply:
            return Reply(f"re: {body['messages'][0]['content']}")

        with serve(echo) as server, Ledger(tmp_path / "ledger") as ledger:
            answers = ask([question("a"), question("乙")], ledger, OpenAIChat(server.base_url))
            assert len(ledger) == 2
        return [answer.text for answer in answers]

    assert asyncio.run(notebook()) == ["re: a", "re: 乙"]


def test_an_error_inside_a_running_loop_is_the_same_error(tmp_path: Path) -> None:
    async def notebook() -> None:
        with Ledger(tmp_path / "ledger") as ledger:
            ask([question("a")], ledger, OpenAIChat("http://127.0.0.1:9/v1", max_retries=0))

    with pytest.raises(ConnectionFailed, match=r"0 of 1 calls are recorded; run the same command again to go on\.$"):
        asyncio.run(notebook())


def test_the_work_sees_the_context_of_its_caller_and_only_a_running_loop_costs_a_thread() -> None:
    async def where() -> tuple[str, bool]:
        return ROOM.get(), threading.current_thread() is threading.main_thread()

    async def notebook() -> tuple[str, bool]:
        ROOM.set("library")
        return run(where())

    assert asyncio.run(notebook()) == ("library", False)
    assert run(where()) == ("hall", True)


@pytest.mark.parametrize("loop", ["notebook", "script"])
def test_ctrl_c_inside_a_running_loop_says_what_is_recorded(tmp_path: Path, loop: str) -> None:
    pids: list[int] = []

    def stop_at_the_fourth(_: object, number: int) -> Reply:
        if number == 3:
            os.kill(pids[0], signal.SIGINT)
        return Reply(delay=1.0 if number == 3 else 0.0)

    with serve(stop_at_the_fourth) as server:
        words = [sys.executable, "-c", STOPPED, str(tmp_path / "ledger"), server.base_url, loop]
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), text=True) as process:
            pids.append(process.pid)
            said = process.communicate(timeout=60)[0]
    assert said == "Interrupted. 3 of 20 calls are recorded; run the same command again to go on. 3\n"
    assert len(server.requests) == 4
