"""The interface of inference engines: their pages, requests and replies; and the settings of servers.

Each engine has a file with functions that build requests or read replies, both plain JSON, and an `Engine` that
combines them. The functions open no connections; `pool` sends the requests.
"""

import math
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluralbench_calls.backends.endpoint import provider_of
from pluralbench_calls.errors import CallsError
from pluralbench_runs import FrozenModel, one_line
from pydantic import Field, field_validator

from pluralbench_rewards.errors import RewardsError

EngineName = Literal["vllm", "sglang", "tei", "llamacpp", "pluralbench"]
Kind = Literal["classifier", "implicit", "token"]
Output = Literal["logits", "states", "rewards"]
MAX_NUMBER = sys.float_info.max

PAGES = ("/version", "/v1/models", "/model_info", "/get_model_info", "/server_info", "/info", "/props")
"""Pages that are fetched (GET) to detect an engine. No POST is sent, because an unknown one can end SGLang."""

Pages = Mapping[str, Any]
"""JSON by path of `PAGES`, without missing pages and those that are not JSON."""


class ServerError(RewardsError):
    """A server that cannot be reached, has a wrong model or settings, or sends unusable replies."""


class ReplyError(RewardsError):
    """A reply of the wrong form; the message continues a sentence that starts with the server's URL."""


@dataclass(frozen=True)
class Conversation:
    """A conversation to score.

    Attributes:
        text: For engines that accept only text: the text that they convert to these ids, adding special tokens.
        reads: For an implicit reward: positions r whose next token is scored, by the log-probability of `ids[r + 1]`.
        labels: For a token reward: ids whose logits after the conversation are read.
    """

    ids: Sequence[int]
    text: str
    reads: range
    labels: tuple[int, ...] = ()


@dataclass(frozen=True)
class EngineRequest:
    """A POST request: its JSON body, and its path below the server's URL."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True)
class ServerInfo:
    """Properties of a server, from its pages.

    Attributes:
        max_inputs: Maximum number of inputs per request; None if unlimited.
        labels: Labels of the logits in their order, for engines that identify them by label.
        generates: Whether it generates text, instead of scoring it; None if no page shows it.
    """

    version: str
    models: tuple[str, ...]
    root: str | None = None
    max_length: int | None = None
    max_inputs: int | None = None
    labels: tuple[str, ...] = ()
    generates: bool | None = None

    @property
    def model(self) -> str:
        """The name of the model in requests."""
        return self.models[0]


Request = Callable[[Sequence[Conversation], ServerInfo], EngineRequest]
"""Builds one request for conversations, at most `ServerInfo.max_inputs`."""

Read = Callable[[Any, Sequence[Conversation], ServerInfo], list[list[float]]]
"""Reads the JSON of a reply with status 200: one row per conversation, in order. Raises `ReplyError`."""

Examination = Generator[EngineRequest, tuple[int, Any], None]
"""Yields requests one by one and receives the status and the JSON (or None) of each reply."""


@dataclass(frozen=True)
class Engine:
    """An inference engine.

    Attributes:
        name: Name in settings.
        title: Name in messages.
        raw_logits_hint: How to get raw logits from it, for messages: "start it with ...".
        start_options: Options with which it serves a kind of model, for messages.
        identify: Reads the pages; None if they are not of this engine. Raises `ReplyError` for unusable settings.
        request, read: Request for a classifier, and one row per conversation of its reply: what `output` says.
        request_implicit, read_implicit: Likewise for an implicit reward; None if the engine has no log-probabilities.
            Rows have those for `Conversation.reads`.
        request_tokens, read_tokens: Likewise for a token reward, to a server that generates; None if unsupported. Rows
            have the log-probabilities of the two `labels` among them.
        examine: Sends requests for properties that no page shows, given the token ids of a conversation.
        tokenize, tokens: Request for the token ids of a text, to compare tokenizers, and how its reply is read.
        output: "logits", or "states" of the last token, to which the client applies the head, or "rewards".
        takes_text: Whether it accepts only text and adds the special tokens of its tokenizer.
    """

    name: EngineName
    title: str
    raw_logits_hint: str
    start_options: Mapping[Kind, str]
    identify: Callable[[Pages], ServerInfo | None]
    request: Request
    read: Read
    request_implicit: Request | None = None
    read_implicit: Read | None = None
    request_tokens: Request | None = None
    read_tokens: Read | None = None
    examine: Callable[[Sequence[int], ServerInfo], Examination] | None = None
    tokenize: Callable[[str, ServerInfo], EngineRequest] | None = None
    tokens: Callable[[Any], list[int]] = lambda reply: token_ids(field(reply, "tokens"))
    output: Output = "logits"
    takes_text: bool = False


def number(value: Any, what: str = "a score") -> float:
    """Check and return a finite number of a reply. Raises `ReplyError` for other values, such as NaN and null."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise ReplyError(f"sent {one_line(value, 40)} as {what}")
    return float(value)


def count(value: Any) -> int | None:
    """Return a positive integer of a page, or None for other values."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def rows_of(rows: Any, expected: int) -> list[Any]:
    """Check and return the rows of a reply. Raises `ReplyError` unless there is one for each conversation."""
    if not isinstance(rows, list):
        raise ReplyError(f"sent {type(rows).__name__} instead of a list of results")
    if len(rows) != expected:
        raise ReplyError(f"sent {len(rows):,} results for {expected:,} conversations")
    return rows


def in_order(rows: Any, expected: int) -> list[Any]:
    """Sort the rows of a reply by their `index`. Raises `ReplyError` unless each index occurs once."""
    rows = rows_of(rows, expected)
    try:
        by_index = {int(row["index"]): row for row in rows}
        return [by_index[index] for index in range(expected)]
    except (KeyError, OverflowError, TypeError, ValueError):
        raise ReplyError(f"sent results without an index for each of {expected:,} conversations") from None


def vector(values: Any) -> list[float]:
    """Check and return a row of numbers. Raises `ReplyError` for other values, such as a row per token."""
    if not isinstance(values, list) or not values:
        raise ReplyError(f"sent {type(values).__name__} instead of the scores of a conversation")
    if isinstance(values[0], list):
        raise ReplyError(
            "scores each token; it must pool the last one (of vLLM: start it for the task classify, not token_classify)"
        )
    return [number(value) for value in values]


def field(reply: Any, name: str) -> Any:
    """Return a field of a JSON object. Raises `ReplyError` if it is missing."""
    if not isinstance(reply, dict) or name not in reply:
        raise ReplyError(f"sent a reply without `{name}`")
    return reply[name]


def token_ids(values: Any) -> list[int]:
    """Check and return token ids. Raises `ReplyError` for other values."""
    if not isinstance(values, list):
        raise ReplyError(f"sent {type(values).__name__} instead of token ids")
    return [int(number(value, "a token id")) for value in values]


def log_probability(value: Any) -> float:
    """Return the logarithm of a probability of a reply. Raises `ReplyError` for other values."""
    probability = number(value, "a probability")
    if not 0 <= probability <= 1:
        raise ReplyError(f"sent {probability:g} as a probability")
    return math.log(probability) if probability else -math.inf


def tokenize(text: str, info: ServerInfo) -> EngineRequest:
    """Request the token ids of a text without special tokens, from a server with vLLM's page."""
    return EngineRequest("/tokenize", {"model": info.model, "prompt": text, "add_special_tokens": False})


def check_tokens(reply: Any, name: str, conversations: Sequence[Conversation]) -> None:
    """Raise `ReplyError` if the token count in the field `name` of a reply differs from the number of sent tokens."""
    counts = reply.get(name) if isinstance(reply, dict) else None
    received = counts.get("prompt_tokens") if isinstance(counts, dict) else None
    sent = sum(len(conversation.ids) for conversation in conversations)
    if received is not None and received != sent:
        raise ReplyError(f"read {received} tokens instead of {sent:,}, so it cut the input or added to it")


ADDRESSES = "URL[,URL...]"


class ServingConfig(FrozenModel):
    """Inference servers that hold a reward model, and how to query them. A resumed run may have other values."""

    server: tuple[str, ...] = Field(
        (),
        description="Score through these servers, which hold the same model and share the work.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    reference_server: tuple[str, ...] = Field(
        (),
        description="Servers that hold the reference of an implicit reward.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    engine: EngineName | None = Field(None, description="Software of the servers. Default: detected.")
    served_name: str | None = Field(
        None, description="The model's name on the servers; needed where a server holds several."
    )
    verify_items: int = Field(
        4,
        ge=0,
        description="Items to compare before scoring: with the local weights if available, else among the servers.",
    )
    batch_size: int = Field(32, ge=1, description="Conversations per request.")
    concurrency: int = Field(8, ge=1, le=10_000, description="Concurrent requests.")
    timeout: float = Field(120.0, gt=0, description="Timeout of a request in seconds, up to its last byte.")
    max_retries: int = Field(
        6, ge=0, le=100, description="Retries of a failed request; at most 1 before the first connection."
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable with the servers' API key. Default: no key.",
        json_schema_extra={"flag": "--server-api-key-env"},
    )

    @field_validator("server", "reference_server", mode="before")
    @classmethod
    def _several(cls, urls: Any) -> Any:
        return tuple(urls.split(",")) if isinstance(urls, str) else urls

    @field_validator("server", "reference_server")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        # The address of OpenAI's API ends in /v1 and is the same server's.
        plain = tuple(url.strip().rstrip("/").removesuffix("/v1").rstrip("/") for url in urls)
        for url in plain:
            try:
                provider_of(url)
            except CallsError:
                raise ValueError(
                    "a server's address has the form http://HOST:PORT, without user, password or query"
                ) from None
        twice = next((url for url in plain if plain.count(url) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is listed twice")
        return plain
