"""A server of the tests on a free port of this machine, in a thread of its own."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler


class QuietHandler(BaseHTTPRequestHandler):
    """Reads bodies, answers whole, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer_with(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        """The content with its length, unless `headers` announce another one."""
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def listening(handler: type[BaseRequestHandler]) -> Iterator[str]:
    """Answer requests by the handler; gives the server's URL, without a slash at its end."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    httpd.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that was killed hangs up on us
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
