"""A server that does everything that a server may do wrong, byte by byte."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from gzip import compress
from http.server import BaseHTTPRequestHandler
from typing import Any

import project_files
from listening import listening

KEY = "sk-planted-7c41f0d2b9a8e6"
JSON = "application/json"
CODES = [400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 413, 415, 418, 422, 425, 429, 431, 451]
CODES += [500, 501, 502, 503, 504, 507, 511, 520, 529]
HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>\n<h1>Bad Gateway</h1></body></html>"
DEEP = b"[" * 100_000 + b"]" * 100_000


@dataclass(frozen=True)
class Sent:
    """What is sent back. length: the Content-Length that is claimed. after: what is done with the socket then."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = JSON
    length: int | None = None
    after: Callable[[socket.socket], object] | None = None


Make = Callable[[bytes], Sent]
"""From a good body to what is sent instead."""


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _drip(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        for _ in range(600):
            connection.sendall(b" ")
            time.sleep(0.1)


def _endless(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"x" * 65_536)


def _nothing(connection: socket.socket) -> None:
    """Blocks of a gzip stream that hold nothing."""
    with contextlib.suppress(OSError):
        for _ in range(600):
            connection.sendall(b"\0\0\0\xff\xff")
            time.sleep(0.1)


@cache
def _bomb() -> bytes:
    """A gigabyte in a few kilobytes."""
    return compress(compress(bytes(10**9), 9), 9)


def _changed(path: str, value: Any) -> Make:
    """The good answer with another value at a dotted path."""

    def make(good: bytes) -> Sent:
        answer = json.loads(good)
        *way, last = path.split(".")
        at = answer
        for name in way:
            at = at[int(name) if name.isdigit() else name]
        at[int(last) if last.isdigit() else last] = value
        return Sent(json.dumps(answer).encode())

    return make


def _refused(status: int, said: str) -> Make:
    body = json.dumps({"error": {"message": said, "code": said}}).encode()
    return lambda _: Sent(body, status, {"Retry-After": "0", "X-Error-Message": said, "X-Request-Id": said})


FAULTS: dict[str, Make] = {
    "drip": lambda good: Sent(good[:1], length=len(good), after=_drip),
    "huge": lambda _: Sent(b'{"id": "' + b"x" * 12_000_000 + b'"}'),
    "endless": lambda _: Sent(b'{"id": "', length=10**11, after=_endless),
    "bomb": lambda _: Sent(_bomb(), headers={"Content-Encoding": "gzip, gzip"}),
    "compressed nothing": lambda _: Sent(
        compress(b"")[:10], headers={"Content-Encoding": "gzip"}, length=10**9, after=_nothing
    ),
    "html": lambda _: Sent(HTML, kind="text/html"),
    "html as json": lambda _: Sent(HTML, 502),
    "half": lambda good: Sent(good[: len(good) // 2], length=len(good)),
    "half, whole length": lambda good: Sent(good[: len(good) // 2]),
    "reset": lambda good: Sent(good[:9], length=len(good), after=_reset),
    "silence": lambda _: Sent(length=5),
    "empty": lambda _: Sent(),
    "too short a length": lambda good: Sent(good, length=len(good) - 5),
    "no such encoding": lambda good: Sent(good, headers={"Content-Encoding": "gzip"}),
    "invalid utf-8": lambda good: Sent(good.replace(b'"choices"', b'"\xff\xfe": 1, "choices"')),
    "nan": _changed("usage.prompt_tokens", float("nan")),
    "huge number": lambda good: Sent(good.replace(b'"prompt_tokens": 10', b'"prompt_tokens": ' + b"9" * 5_000)),
    "negative tokens": _changed("usage.completion_tokens", -5),
    "nested": lambda _: Sent(DEEP),
    "nested error": lambda _: Sent(b'{"error": ' + DEEP + b"}", 400),
    "list": lambda _: Sent(b"[]"),
    "null": lambda _: Sent(b"null"),
    "no choices": _changed("choices", []),
    "null choices": _changed("choices", None),
    "no message": _changed("choices.0.message", None),
    "no text": _changed("choices.0.message.content", None),
    "a list for a text": _changed("choices.0.message.content", [{"type": "text"}]),
    "a lone surrogate": _changed("choices.0.message.content", "\ud800 text"),
    "a null byte": _changed("choices.0.message.content", "a\0b"),
    "redirect": lambda _: Sent(b"", 302, {"Location": "http://127.0.0.1:9/elsewhere"}),
    "redirect to itself": lambda _: Sent(b"", 307, {"Location": "/"}),
    "key in answer": _changed("choices.0.message.content", f"Your key is {KEY}, [[A]]."),
    "key in refusal": _changed("choices.0.message.refusal", f"No: {KEY}"),
    "key in model": _changed("model", f"model-{KEY}"),
    "key in finish reason": _changed("choices.0.finish_reason", KEY),
    "key in html": lambda _: Sent(b"<p>" + KEY.encode() + b"</p>", 502, kind="text/html"),
    "key in a header": lambda good: Sent(good, headers={"X-Key": KEY, "X-Request-Id": KEY}),
    "key in a redirect": lambda _: Sent(b"", 302, {"Location": f"http://127.0.0.1:9/?key={KEY}"}),
    **{f"status {code}": _refused(code, f"You sent Bearer {KEY}.") for code in CODES},
}


@contextmanager
def misbehaving(make: Make, after: int = 0) -> Iterator[str]:
    """Serve the fault on a free loopback port, from the request of this number on; its URL."""
    asked = 0
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            nonlocal asked
            with lock:
                number, asked = asked, asked + 1
            good = _good(self.rfile.read(int(self.headers.get("Content-Length") or 0)), number)
            sent = Sent(good) if number < after else make(good)
            with contextlib.suppress(OSError):
                self.send_response(sent.status, "Fine")
                for name, value in sent.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", sent.kind)
                self.send_header("Content-Length", str(len(sent.body) if sent.length is None else sent.length))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(sent.body)
                if sent.after is not None:
                    sent.after(self.connection)
            self.close_connection = sent.length is not None or sent.after is not None

        do_GET = do_POST = do_HEAD = do_PUT = _answer

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with listening(Handler) as url:
        yield url


def _good(body: bytes, number: int) -> bytes:
    try:
        text = project_files.answer(json.loads(body), number).text
    except (ValueError, KeyError, TypeError):  # of no chat
        text = "fine"
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    made = {"id": "1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": choices, "usage": usage}
    return json.dumps(made).encode()
