"""A loopback server that sends whatever bytes a test gives it, in answer to a whole HTTP request."""

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from listening import listening

Answering = Callable[[int], Iterable[bytes]]
"""From the number of a request (from 0) to the pieces that are sent in answer; then the connection is closed."""


@dataclass
class RawServer:
    """base_url: for the client. requests: each as it came in. sent: bytes that went out."""

    base_url: str = ""
    requests: list[bytes] = field(default_factory=list)
    sent: int = 0


@contextmanager
def serve_raw(answering: Answering) -> Iterator[RawServer]:
    """Serve `answering` on a free loopback port, a request a connection."""
    server, over = RawServer(), threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = _request(self.request)
            if request is None:
                return
            server.requests.append(request)
            for piece in answering(len(server.requests) - 1):
                if over.is_set():
                    return
                self.request.sendall(piece)
                server.sent += len(piece)

    with listening(Handler) as url:
        server.base_url = f"{url}/v1"
        try:
            yield server
        finally:
            over.set()


def _request(connection: socket.socket) -> bytes | None:
    """A whole request; None if the client closes the connection before."""
    came = b""
    while not (head := came.partition(b"\r\n\r\n"))[1] or len(head[2]) < _length(head[0]):
        if not (part := connection.recv(65536)):
            return None
        came += part
    return came


def _length(head: bytes) -> int:
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lengths[0].split(b":")[1]) if lengths else 0


def http(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """An HTTP response, whose Content-Length is `length` where that is given."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    if not any("transfer-encoding" in header.lower() for header in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(content: object = "fine", **more: object) -> bytes:
    """The JSON of a chat completion; `more` replaces its fields, `finish_reason` that of its choice."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content},
        "finish_reason": more.pop("finish_reason", "stop"),
    }
    return json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], **more}).encode()
