"""Killed in the middle: no recorded answer is lost or asked again. For Ctrl-C see `test_loops.py`."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chat_server import ChatServer, Reply, request_digest, serve
from commands import environment
from pluralbench_calls import Ledger, Limits, OpenAIChat, Request, ask, read_ledger

CALLS = 60
CONCURRENCY = 4
ASKING = """
import sys
from pathlib import Path
from pluralbench_calls import Ledger, Limits, OpenAIChat, Request, ask

path, base_url, calls, concurrency = sys.argv[1:]
requests = [
    Request("chat", "127.0.0.1", "m", {"messages": [{"role": "user", "content": f"{number} 问题"}]})
    for number in range(int(calls))
]
with Ledger(Path(path)) as ledger:
    ask(requests, ledger, OpenAIChat(base_url), limits=Limits(concurrency=int(concurrency)))
"""


def requests() -> list[Request]:
    """What the process asks."""
    bodies = [{"messages": [{"role": "user", "content": f"{number} 问题"}]} for number in range(CALLS)]
    return [Request("chat", "127.0.0.1", "m", body) for body in bodies]


def digests_by_key() -> dict[str, str]:
    """From the key of each request to the digest of what the server sees of it."""
    return {request.key: request_digest({**request.body, "model": "m"}) for request in requests()}


def start(path: Path, server: ChatServer) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", ASKING, str(path), server.base_url, str(CALLS), str(CONCURRENCY)]
    return subprocess.Popen(words, stderr=subprocess.PIPE, env=environment(), text=True, encoding="utf-8")


def wait_for(server: ChatServer, requests: int) -> None:
    deadline = time.monotonic() + 60
    while len(server.requests) < requests:
        assert time.monotonic() < deadline, "the process does not ask"
        time.sleep(0.005)


def recorded(path: Path) -> dict[str, tuple[object, ...]]:
    return {row[0]: row for row in read_ledger(path).iter_rows()}


@pytest.mark.heavy
def test_a_kill_loses_no_answer_and_none_is_asked_again(tmp_path: Path) -> None:
    path, digests = tmp_path / "ledger", digests_by_key()
    with serve(lambda *_: Reply(delay=0.03)) as server:
        with start(path, server) as process:
            wait_for(server, 2 * CONCURRENCY)
            time.sleep(random.Random(20).uniform(0, 0.12))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        before = recorded(path)
        assert 0 < len(before) < CALLS
        asked = len(server.requests)
        with Ledger(path) as ledger:
            ask(requests(), ledger, OpenAIChat(server.base_url), limits=Limits(concurrency=CONCURRENCY))
        assert not {digests[key] for key in before} & set(server.digests()[asked:])
        after = recorded(path)
        assert before.items() <= after.items()
        assert after.keys() == digests.keys()
        # A kill costs at most what was in flight.
        assert len(server.requests) <= CALLS + CONCURRENCY
