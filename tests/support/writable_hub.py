"""A Hub on loopback that takes datasets, and tells what it was sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

OID = "5" * 40


class WritableHub(ThreadingHTTPServer):
    """A Hub that takes datasets.

    asked: paths and bodies. refuse: a status for every commit. says: the error of a refusal; `{authorization}` is the
    header that came.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, Any]] = []
        self.refuse: int | None = None
        self.says = "You may not."

    @property
    def environment(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_address[1]}"
        return {"HF_ENDPOINT": url, "HF_TOKEN": "hf_nobody", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}

    def bodies(self, part: str) -> list[Any]:
        return [body for path, body in self.asked if part in path]


class Handler(BaseHTTPRequestHandler):
    server: WritableHub

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lines = [json.loads(line) for line in raw.splitlines() if line.strip()]
        path = self.path.partition("?")[0]
        self.server.asked.append((path, lines if "/commit/" in path else lines[0] if lines else None))
        status, answer = 200, self.answer(path, lines)
        if "/commit/" in path and self.server.refuse is not None:
            said = self.server.says.format(authorization=self.headers.get("Authorization"))
            status, answer = self.server.refuse, {"error": said}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer(self, path: str, lines: list[Any]) -> dict[str, Any]:
        url = f"{self.server.environment['HF_ENDPOINT']}/datasets/org/name"
        if "/preupload/" in path:
            modes = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return {"files": [{"path": file["path"], **modes} for file in lines[0]["files"]]}
        if "/commit/" in path:
            return {"success": True, "commitUrl": f"{url}/commit/{OID}", "commitOid": OID}
        return {"url": url, "errors": [], "warnings": []}

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def taking() -> Iterator[WritableHub]:
    """A Hub that takes datasets on a free loopback port."""
    with WritableHub() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
