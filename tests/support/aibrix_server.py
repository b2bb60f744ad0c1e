"""AIBrix's real Files and Batch API, from an environment of its own, in front of any server of chat completions."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from commands import environment

SERVING = """
import sys
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

    AIBRIX_PYTHON is the Python of an environment that has `aibrix`, as `.ci/run` makes one; without it, skips.
    """
    python = os.environ.get("AIBRIX_PYTHON")
    if not python:
        pytest.skip("AIBRIX_PYTHON names no Python that has aibrix==0.8.0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [python, "-c", SERVING, behind, str(port)]
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
