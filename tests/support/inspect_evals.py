"""Tasks of inspect_ai and its command in this process, and replies that only depend on a request."""

import gc
import hashlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat_server import Reply
from token_logprobs import sent, token


def by_text(body: dict[str, Any], _: int = 0) -> Reply:
    """A reply that depends on nothing but the messages and the temperature: a verdict, or nothing that can be read."""
    text = json.dumps([*((one["role"], one["content"]) for one in body["messages"]), body.get("temperature")])
    number = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 23
    letter = "AB"[number % 2]
    if "REJECT ME" in text:
        return Reply("This prompt is not allowed.", status=400)
    if number == 0:
        return Reply(None, refusal="I will not judge this.")
    if number < 3 and not body.get("logprobs"):
        return Reply("It is hard to say.", finish_reason="length" if number == 1 else "stop")
    return _verdict(body, letter, number)


def _verdict(body: dict[str, Any], letter: str, number: int) -> Reply:
    if body.get("logprobs"):
        written, logprobs = sent(["Verdict", ":", " [[", token(letter, own=0.6, A=0.3, B=0.2), "]]"])
        return Reply(written, logprobs=logprobs)
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]["properties"]
        return Reply(json.dumps({name: letter if name == "verdict" else "So." for name in schema}))
    if any("<response_a>" in one["content"] for one in body["messages"]):
        return Reply(f"Because.\n[[{letter}]]", cached=4)
    return Reply(f"Good.\n[[{1 + number % 9}]]")


@contextmanager
def own_settings() -> Iterator[None]:
    """Keep to this context what inspect_ai sets for its whole process, and what is said of sockets that it leaves."""
    loggers = [logging.getLogger(name) for name in (None, "httpx", "httpx2")]
    before = [(logger, logger.level, [*logger.handlers]) for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def evaluate(**options: Any) -> Any:
    """Run a task, and return its log. options: arguments of `inspect_ai.eval`; model "mock": replies of `by_text`."""
    from inspect_ai import eval as evaluate_tasks
    from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

    def mocked(messages: list[Any], tools: Any, choice: Any, config: GenerateConfig) -> ModelOutput:
        del tools, choice
        asked = [{"role": one.role, "content": one.text} for one in messages]
        reply = by_text({"messages": asked, "temperature": config.temperature})
        stop: Any = {"length": "max_tokens"}.get(reply.finish_reason, reply.finish_reason)
        text = reply.text or reply.refusal or ""
        output = ModelOutput.from_content("mock", text, "content_filter" if reply.refusal else stop)
        output.usage = ModelUsage(input_tokens=reply.tokens[0], output_tokens=reply.tokens[1])
        return output

    if options["model"] == "mock":
        options["model"] = get_model("mockllm/judge-1", custom_outputs=mocked)
    [log] = evaluate_tasks(**options, display="plain", score_display=False, ctl_server=False)
    return log
