"""Chat requests to a server on loopback."""

from typing import Any

from pluralbench_calls import Request


def question(text: str = "hi", *, model: str = "m", sample: int = 0, label: str = "", **body: Any) -> Request:
    """A chat request of one message. body: what goes out besides."""
    messages = [{"role": "user", "content": text}]
    return Request("chat", "127.0.0.1", model, {"messages": messages, **body}, sample=sample, label=label)
