"""Batches through AIBrix's real server, with a chat server of the tests behind it."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
import pytest
from chat_server import Reply, serve
from commands import environment
from pluralbench_calls import Ledger, OpenAIChat, Request, ask
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.service import BatchService

PYTHON = os.environ.get("AIBRIX_PYTHON", "")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not PYTHON, reason="AIBRIX_PYTHON names no Python that has aibrix==0.8.0"),
]
SERVING = """
import sys
from unittest.mock import MagicMock

# A dry run asks no cluster, and the client of one has 700 modules.
sys.modules |= {name: MagicMock() for name in ("kubernetes", "kubernetes.client", "kubernetes.client.rest")}

import aibrix.metadata.app as app
from aibrix.batch.client.sources.static import StaticEndpointSource

behind, port = sys.argv[1:]
app.NoopEndpointSource = lambda: StaticEndpointSource(behind, capacity=2)  # else --dry-run echoes
sys.argv = ["aibrix_metadata", "--host", "127.0.0.1", "--port", port, "--dry-run"]
app.main()
"""


@contextmanager
def aibrix_server(behind: str, folder: Path) -> Iterator[str]:
    """The base URL of a server that sends the calls of its batches to the one at `behind`.

    AIBRIX_PYTHON is the Python of an environment that has `aibrix`, as `.ci/run` makes one.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [PYTHON, "-c", SERVING, behind, str(port)]
    asks = environment() | {"STORAGE_LOCAL_PATH": str(folder / "stored"), "PYTHONPATH": ""}
    with (folder / "aibrix.log").open("wb") as log:
        server = subprocess.Popen(words, cwd=folder, env=asks, stdout=log, stderr=log)
    try:
        _wait(server, port, folder / "aibrix.log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(20)


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        assert server.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        try:
            with urlopen(f"http://127.0.0.1:{port}/v1/batches", timeout=10):
                return
        except OSError:
            time.sleep(0.1)


def answer(body: dict[str, Any], _: int) -> Reply:
    """Names the place that is asked for; long questions take long."""
    text = body["messages"][0]["content"]
    return Reply(f"A river in {text[16:]}", tokens=(len(text), body["seed"]), delay=0.3 if "slowly" in text else 0.0)


@pytest.fixture(scope="module")
def behind() -> Iterator[str]:
    with serve(answer) as server:
        yield server.base_url


@pytest.fixture(scope="module")
def base_url(behind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aibrix_server(behind.removesuffix("/v1"), tmp_path_factory.mktemp("aibrix")) as url:
        yield url


def questions(count: int, text: str = "Name a river in {}.") -> list[Request]:
    places = ["France", "中国", "भारत", "Egypt", "Brazil"]
    return [
        Request(
            "chat",
            "127.0.0.1",
            "model",
            {
                "messages": [{"role": "user", "content": text.format(places[number % 5])}],
                "max_tokens": 8,
                "temperature": 0.0,
                "seed": number,
            },
        )
        for number in range(count)
    ]


def batches(url: str) -> OpenAIBatches:
    return OpenAIBatches(url, first_pause=0.2, longest_pause=0.5)


class Killed(BaseException):
    """The process ends here."""


def test_a_batch_says_what_the_model_says_and_is_found_again(
    behind: str, base_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, client = BatchService.create, openai.OpenAI(base_url=base_url, api_key="none")
    before = len([*client.batches.list()])

    async def killed(*args: Any) -> str:
        await create(*args)
        raise Killed  # before anybody reads what the batch is called

    with Ledger(tmp_path / "batch") as ledger, Ledger(tmp_path / "direct") as direct:
        with monkeypatch.context() as patch:
            patch.setattr(BatchService, "create", killed)
            with pytest.raises(Killed):
                ask(questions(5), ledger, batches(base_url))
        answers = ask(questions(5), ledger, batches(base_url))
        same = ask(questions(5), direct, OpenAIChat(behind))
    assert [(a.text, a.outcome, a.completion_tokens) for a in answers] == [
        (a.text, a.outcome, a.completion_tokens) for a in same
    ]
    assert len([*client.batches.list()]) == before + 1
    client.close()


def test_what_is_cancelled_goes_out_again(base_url: str, tmp_path: Path) -> None:
    client = openai.OpenAI(base_url=base_url, api_key="none")
    before = {batch.id for batch in client.batches.list()}
    seen: list[Any] = []

    def cancel() -> None:
        while not seen:
            time.sleep(0.1)
            seen.extend(b for b in client.batches.list() if b.id not in before and b.status == "in_progress")
        client.batches.cancel(seen[0].id)

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    with Ledger(tmp_path / "batch") as ledger:
        answers = ask(questions(16, "Name, slowly, a river in {}."), ledger, batches(base_url))
    thread.join()
    assert {answer.outcome for answer in answers} == {"answer"}
    stopped = client.batches.retrieve(seen[0].id)
    assert stopped.status == "cancelled"
    again = [batch for batch in client.batches.list() if batch.id not in before | {stopped.id}]
    done = stopped.request_counts.completed if stopped.request_counts else 0
    assert [batch.request_counts.total for batch in again if batch.request_counts] == [16 - done]
    client.close()
