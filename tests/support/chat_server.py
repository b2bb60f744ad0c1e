"""A loopback server that speaks OpenAI's chat protocol and does what a test tells it to."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from listening import QuietHandler, listening


@dataclass(frozen=True)
class Reply:
    """What the server sends back; a status other than 200 sends `text` as the error's message.

    error: what the error says besides, such as its `param` and its `code`.
    message: further fields of the message, such as its `reasoning_content`.
    logprobs: those of the choice, as they are sent.
    body: the whole JSON of the response in place of all that.
    """

    text: str | None = "fine"
    status: int = 200
    finish_reason: str = "stop"
    refusal: str | None = None
    model: str = "model-2026-01-01"
    tokens: tuple[int, int] = (10, 5)
    cached: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    message: dict[str, Any] = field(default_factory=dict)
    logprobs: dict[str, Any] | None = None
    delay: float = 0.0
    hang_up: bool = False
    body: Any = None


Script = Callable[[dict[str, Any], int], Reply]
"""From a request's JSON and its number (from 0) to the reply."""


@dataclass
class ChatServer:
    """base_url: for the client. requests: the JSON of each request as it came in. headers, paths: likewise."""

    base_url: str
    requests: list[dict[str, Any]]
    headers: list[dict[str, str]]
    paths: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    def digests(self) -> list[str]:
        """A digest of each request that came in."""
        return [request_digest(body) for body in self.requests]


def request_digest(body: dict[str, Any]) -> str:
    """SHA-256 of a request's JSON."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def refused_by_reasoning(body: dict[str, Any]) -> Reply | None:
    """How OpenAI's reasoning models refuse the first parameter of a request that they do not take; None if they do."""
    if "max_tokens" in body:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return Reply(said, status=400, error={"param": "max_tokens", "code": "unsupported_parameter"})
    for name in ("temperature", "top_p"):
        if body.get(name, 1) != 1:
            said = (
                f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                "Only the default (1) value is supported."
            )
            return Reply(said, status=400, error={"param": name, "code": "unsupported_value"})
    return None


@contextmanager
def serve(script: Script) -> Iterator[ChatServer]:
    """Serve `script` on a free loopback port."""
    lock = threading.Lock()
    server = ChatServer("", [], [])

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.body())
            with lock:
                number = len(server.requests)
                server.requests.append(body)
                server.headers.append(dict(self.headers))
                server.paths.append(self.path)
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
            reply = script(body, number)
            time.sleep(reply.delay)
            with lock:
                server.at_once -= 1
            if reply.hang_up:
                self.hang_up()
                return
            failed = {"error": {"message": reply.text, **reply.error}}
            whole = completion(reply) if reply.status == 200 else failed
            content = json.dumps(whole if reply.body is None else reply.body)
            self.answer_with(reply.status, content.encode(), {"Content-Type": "application/json", **reply.headers})

    with listening(Handler) as url:
        server.base_url = f"{url}/v1"
        yield server


def completion(reply: Reply) -> dict[str, Any]:
    """The JSON of a chat completion that says this."""
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal, **reply.message}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": reply.model,
        "choices": [choice if reply.logprobs is None else choice | {"logprobs": reply.logprobs}],
        "usage": {
            "prompt_tokens": reply.tokens[0],
            "completion_tokens": reply.tokens[1],
            "total_tokens": sum(reply.tokens),
            "prompt_tokens_details": {"cached_tokens": reply.cached},
        },
    }
