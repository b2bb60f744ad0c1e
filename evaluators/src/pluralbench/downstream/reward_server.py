"""The web application that answers with rewards, as inference servers of reward models do.

- `/classify` of vLLM: text, token ids or messages; verl, and `score --server`, ask it. It gives the reward as the only
  "probability", without an activation.
- `/get_reward` of OpenRLHF (`openrlhf/cli/serve_rm.py`): queries with their prompts and labels.
- `/health`, `/version` and `/v1/models` say what runs, `/metrics` how many requests it answered (for Prometheus).

Errors have the form of vLLM's.
"""

import asyncio
import hmac
import json
import math
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from threading import Lock
from types import NoneType
from typing import Any

from pluralbench_calls.errors import CallsError
from pluralbench_policies.reward_functions import (
    BatchedRewards,
    Conversation,
    Reward,
    group_from_messages,
    openrlhf_conversations,
)
from pluralbench_rewards import RenderedConversation
from pluralbench_runs import UserError, log_status, one_line, plural
from pluralbench_runs.secrets import redact

from pluralbench.config import RewardServerConfig
from pluralbench.data.texts import is_texts

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

HEALTH, CLASSIFY, GET_REWARD = "/health", "/classify", "/get_reward"
VERSION, MODELS = "/version", "/v1/models"
METRICS = "/metrics"
PAGES = (HEALTH, VERSION, MODELS, METRICS, CLASSIFY, GET_REWARD)
ACTIVATIONS = ("use_activation", "activation", "softmax")
"""Names of one field in versions of vLLM."""
WITHOUT_EFFECT = ("user", "priority", "request_id", "cache_salt")
"""Fields of vLLM that change no reward."""
CLASSIFY_FIELDS = (
    *("model", "input", "messages", "add_special_tokens", "add_generation_prompt", "truncate_prompt_tokens"),
    *(*ACTIVATIONS, *WITHOUT_EFFECT),
)
GET_REWARD_FIELDS = ("query", "prompts", "labels")
BODY_SECONDS = 120.0  # in which the body of a request must arrive
LOG_SECONDS = 60.0  # between two lines of the log
OTHER = "other"
"""Page of requests for pages that do not exist."""


@dataclass
class Traffic:
    """Counts requests by page and status, their seconds from the headers to the reply, and scored conversations.

    `open` is the number of requests that are not answered yet.
    """

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: float = 0.0
    conversations: int = 0
    open: int = 0
    _lock: Lock = field(default_factory=Lock)
    _last: tuple[float, int, int, int] = field(default_factory=lambda: (time.monotonic(), 0, 0, 0))

    def count(self, page: str, status: int, seconds: float) -> None:
        """Count an answered request, and print a line if the last one is old."""
        with self._lock:
            self.requests[page, status] += 1
            self.seconds += seconds
            if time.monotonic() - self._last[0] >= LOG_SECONDS:
                self._print_line()

    def print_line(self) -> None:
        """Print what was answered since the last line, if anything was."""
        with self._lock:
            self._print_line()

    def _print_line(self) -> None:
        began, requests, failed, conversations = self._last
        now = time.monotonic(), self.requests.total(), self._failed(), self.conversations
        self._last = now
        new = now[1] - requests
        if new:
            seconds = max(now[0] - began, 0.001)
            log_status(
                f"{plural(new, 'request')} in {seconds:,.0f} s ({new / seconds:,.1f}/s), {now[2] - failed:,} of them "
                f"refused or failed; {plural(now[3] - conversations, 'conversation')} scored."
            )

    def _failed(self) -> int:
        return sum(count for (_, status), count in self.requests.items() if status >= 400)

    def prometheus(self) -> str:
        """Format the numbers as Prometheus reads them."""
        with self._lock:
            by_page = [
                f'pluralbench_requests_total{{page="{page}",status="{status}"}} {count}'
                for (page, status), count in sorted(self.requests.items())
            ]
            families = {
                ("requests_total", "counter", "Answered requests."): by_page,
                ("request_seconds", "summary", "Seconds from the headers of a request to its reply."): [
                    f"pluralbench_request_seconds_sum {self.seconds}",
                    f"pluralbench_request_seconds_count {self.requests.total()}",
                ],
                ("conversations_total", "counter", "Scored conversations."): [
                    f"pluralbench_conversations_total {self.conversations}"
                ],
                ("requests_open", "gauge", "Requests that are not answered yet."): [
                    f"pluralbench_requests_open {self.open}"
                ],
            }
        lines = []
        for (name, kind, text), samples in families.items():
            lines += [f"# HELP pluralbench_{name} {text}", f"# TYPE pluralbench_{name} {kind}", *samples]
        return "\n".join(lines) + "\n"


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, *, close: bool = False) -> None:
        super().__init__(message)
        self.status, self.close = status, close


class Disconnected(Exception):
    """The client is gone."""


@dataclass(frozen=True)
class RewardServer:
    """An ASGI application.

    Attributes:
        rewards: Computes rewards; what arrives during a batch forms the next one.
        name: Name of the model, in requests and replies.
        config: What it accepts.
        key: Key that clients have to send; "" for none.
        max_length: Maximum number of tokens of a conversation, to announce it. None: it is not known.
        traffic: Counts the requests.
    """

    rewards: BatchedRewards
    name: str
    config: RewardServerConfig
    key: str = ""
    max_length: int | None = None
    traffic: Traffic = field(default_factory=Traffic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        began, close = time.monotonic(), False
        self.traffic.open += 1
        try:
            status, reply = HTTPStatus.OK, await self._reply(scope, receive)
        except Disconnected:
            return
        except asyncio.CancelledError:  # it has waited long enough for this request
            status, close = HTTPStatus.SERVICE_UNAVAILABLE, True
            reply = _error(status, "The server stops; ask it again once it runs.")
        except Refusal as error:
            status, reply, close = error.status, _error(error.status, str(error)), error.close
        except UserError as error:  # of calls: a judge's endpoint fails
            status = HTTPStatus.BAD_GATEWAY if isinstance(error, CallsError) else HTTPStatus.BAD_REQUEST
            reply = _error(status, str(error))
        except Exception as error:  # noqa: BLE001 - the server goes on
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            message = f"Internal error ({one_line(f'{type(error).__name__}: {error}')})."
            log_status(redact(message))
            reply = _error(status, message)
        finally:
            self.traffic.open -= 1
        content = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
        kind = b"text/plain; version=0.0.4" if isinstance(reply, str) else b"application/json"
        headers = [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
        headers += [(b"connection", b"close")] if close else []
        self.traffic.count(scope["path"] if scope["path"] in PAGES else OTHER, status, time.monotonic() - began)
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _reply(self, scope: Scope, receive: Receive) -> dict[str, Any] | str:
        path, method = scope["path"], scope["method"]
        headers = {name.lower(): value for name, value in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= headers.keys():
            # A proxy that reads the other one would take the rest for a request of its own.
            message = "The request has both a Content-Length and a Transfer-Encoding; send one of them."
            raise Refusal(message, close=True)
        key = f"Bearer {self.key}".encode()
        if self.key and path != HEALTH and not hmac.compare_digest(headers.get(b"authorization", b""), key):
            message = "The request has no key or a wrong one; send `Authorization: Bearer KEY`."
            raise Refusal(message, HTTPStatus.UNAUTHORIZED)
        model = {"id": self.name, "object": "model", "owned_by": "pluralbench", "root": self.name}
        pages: dict[str, dict[str, Any] | str] = {
            HEALTH: {},
            VERSION: {"version": version("pluralbench")},
            MODELS: {"object": "list", "data": [model | {"max_model_len": self.max_length}]},
            METRICS: self.traffic.prometheus(),
        }
        answers = {CLASSIFY: self._classify, GET_REWARD: self._get_reward}
        if path not in PAGES:
            raise Refusal(f"There is no {path}; there are {', '.join(PAGES)}.", HTTPStatus.NOT_FOUND)
        expected = "GET" if path in pages else "POST"
        if method != expected:
            raise Refusal(f"{path} is asked by {expected}, not by {method}.", HTTPStatus.METHOD_NOT_ALLOWED)
        if path in pages:
            return pages[path]
        try:
            async with asyncio.timeout(BODY_SECONDS):
                content = await self._body(headers.get(b"content-length", b""), receive)
        except TimeoutError:
            message = f"The request did not arrive within {BODY_SECONDS:.0f} s; send fewer conversations."
            raise Refusal(message, HTTPStatus.REQUEST_TIMEOUT, close=True) from None
        return await answers[path](_parse(content))

    async def _body(self, announced: bytes, receive: Receive) -> bytes:
        limit = self.config.max_request_size << 20
        body = bytearray()
        more, size = True, int(announced) if announced.isdigit() else 0
        while more:
            if max(size, len(body)) > limit:
                message = f"The request is larger than {self.config.max_request_size:,} MiB; send fewer conversations."
                raise Refusal(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Disconnected
            body += event.get("body", b"")
            more = event.get("more_body", False)
        return bytes(body)

    async def _classify(self, body: Mapping[str, Any]) -> dict[str, Any]:
        _check_fields(body, CLASSIFY_FIELDS)
        model = body.get("model")
        if model is not None and model != self.name:
            raise Refusal(f"There is no model {one_line(repr(model), 80)}; there is {self.name}.", HTTPStatus.NOT_FOUND)
        activation = next((name for name in ACTIVATIONS if body.get(name)), None)
        if activation is not None:
            raise Refusal(f"Rewards have no activation; set `{activation}` to false.")
        if body.get("add_generation_prompt"):
            raise Refusal("A reward is of a finished response; set `add_generation_prompt` to false.")
        most = body.get("truncate_prompt_tokens")
        if type(most) not in {int, NoneType}:
            raise Refusal("`truncate_prompt_tokens` is not a number.")
        rewards = await self._rewards(_classified(body))
        counts = [reward.tokens for reward in rewards]
        if most is not None and 0 < most < max((count or 0 for count in counts), default=0):
            message = f"A conversation has more than {most:,} tokens (`truncate_prompt_tokens`), and none is cut here."
            raise Refusal(message)
        total = sum(count or 0 for count in counts)
        usage = {"prompt_tokens": total, "total_tokens": total, "completion_tokens": 0}
        data = [
            {"index": index, "label": "LABEL_0", "probs": [reward.value], "num_classes": 1}
            for index, reward in enumerate(rewards)
        ]
        head = {"id": f"classify-{uuid.uuid4().hex}", "object": "list", "created": int(time.time())}
        return head | {"model": self.name, "data": data} | ({} if None in counts else {"usage": usage})

    async def _get_reward(self, body: Mapping[str, Any]) -> dict[str, Any]:
        _check_fields(body, GET_REWARD_FIELDS)
        query, prompts, labels = (body.get(name) for name in GET_REWARD_FIELDS)
        if not is_texts(query) or not query:
            raise Refusal("`query` is not a list of texts with at least one.")
        if prompts is not None and (not is_texts(prompts) or len(prompts) != len(query)):
            raise Refusal("`prompts` is not a list with a text for each query.")
        if labels is not None and (not isinstance(labels, list) or len(labels) != len(query)):
            raise Refusal("`labels` is not a list with a label for each query.")
        conversations = openrlhf_conversations(self.rewards.model, query, prompts, labels, self.config.ending)
        values = [reward.value for reward in await self._rewards(conversations)]
        return {"rewards": values, "scores": values, "extra_logs": {}}

    async def _rewards(self, conversations: Sequence[Conversation]) -> list[Reward]:
        rewards = await asyncio.wrap_future(self.rewards.submit(conversations))
        self.traffic.conversations += len(rewards)
        for index, reward in enumerate(rewards):
            if math.isnan(reward.value):
                message = f"Conversation {index} (from 0) has no reward ({reward.reason})."
                raise Refusal(message, HTTPStatus.UNPROCESSABLE_ENTITY)
        return rewards


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"The request is not JSON ({one_line(error, 80)}).") from None
    if not isinstance(values, dict):
        raise Refusal("The request is not a JSON object.")
    return values


def _check_fields(body: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = next((name for name in body if name not in known), None)
    if unknown is not None:
        raise Refusal(f"The field {one_line(repr(unknown), 80)} is not known; known are {', '.join(known)}.")


def _classified(body: Mapping[str, Any]) -> list[Conversation]:
    if ("input" in body) == ("messages" in body):
        raise Refusal("Give either `input` or `messages`.")
    if "messages" in body:
        return [group_from_messages(_joined_parts(body["messages"]))]
    add = body.get("add_special_tokens", True)
    if not isinstance(add, bool):
        raise Refusal("`add_special_tokens` is neither true nor false.")
    given = body["input"]
    several = given if isinstance(given, list) and not _is_ids(given) else [given]
    if not several or not all(isinstance(one, str) or _is_ids(one) for one in several):
        raise Refusal("`input` is neither a text, nor token ids, nor a list of texts or lists of token ids.")
    return [RenderedConversation(one, add) for one in several]


def _joined_parts(messages: Any) -> Any:
    """Join lists of parts of text in messages as vLLM joins them."""
    if not isinstance(messages, list):
        return messages
    joined = []
    for one in messages:
        content = one.get("content") if isinstance(one, dict) else None
        parts = content if isinstance(content, list) else []
        texts: list[Any] = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        is_text = texts and len(texts) == len(parts) and is_texts(texts)
        joined.append(one | {"content": "\n".join(texts)} if is_text else one)
    return joined


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def _error(status: HTTPStatus, message: str) -> dict[str, Any]:
    kind = f"{status.name.title().replace('_', '')}Error"
    return {"error": {"message": message, "type": kind, "param": None, "code": int(status)}}
