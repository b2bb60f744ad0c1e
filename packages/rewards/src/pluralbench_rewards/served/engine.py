"""What an engine is to the path that scores through servers: its pages, its requests, its replies. One file an engine.

An engine file holds plain functions and one `Engine` made of them. Nothing in it opens a connection: a function makes a
request or reads a reply, both plain JSON, and `pool` sends them.
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluralbench_runs import one_line

from pluralbench_rewards.errors import RewardsError

EngineName = Literal["vllm", "sglang", "tei", "llamacpp"]
Kind = Literal["classifier", "implicit"]
Gives = Literal["logits", "states"]
LARGEST = sys.float_info.max

PAGES = ("/version", "/v1/models", "/model_info", "/get_model_info", "/server_info", "/info", "/props")
"""What is fetched (GET) to tell an engine. A POST that it does not expect can end an engine (SGLang): none is sent."""

Pages = Mapping[str, Any]
"""By the path of `PAGES`, the JSON that came; a page that is missing, or is no JSON, is not in it."""


class ServerError(RewardsError):
    """A server that cannot be reached, is not what it should be, or replies what no scores can be made of."""


class ReplyError(RewardsError):
    """A reply that is not of the promised form; the text is the end of a sentence that begins with the server's URL."""


@dataclass(frozen=True)
class Conversation:
    """A conversation as it is sent. ids: its tokens, special ones included.

    text: for an engine that takes texts, that of which it makes these ids with the special tokens that it adds.
    reads: for an implicit reward the positions whose following token is scored: the log-probability of `ids[r + 1]` for
    each `r` of them is part of the reward.
    """

    ids: Sequence[int]
    text: str
    reads: range


@dataclass(frozen=True)
class EngineRequest:
    """A request: a POST of this JSON to this path below the server's URL."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True)
class ServerInfo:
    """What a server's pages say of it.

    models: names that a request may give; once one is chosen, that alone. root: the folder or ORG/NAME that it loaded,
    where that is told. max_length: the most tokens of an input. at_once: the most inputs of a request, None for any
    number. labels: what it calls the logits, in their order, where replies are told apart by them.
    """

    version: str
    models: tuple[str, ...]
    root: str | None = None
    max_length: int | None = None
    at_once: int | None = None
    labels: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The name that a request gives."""
        return self.models[0]


Request = Callable[[Sequence[Conversation], ServerInfo], EngineRequest]
"""From conversations, at most `About.at_once`, to one request for all of them."""

Read = Callable[[Any, Sequence[Conversation], ServerInfo], list[list[float]]]
"""From the JSON of a reply of status 200 to a row for each conversation, in order. Raises `ReplyError`."""

Examination = Generator[EngineRequest, tuple[int, Any], None]
"""Requests to be sent one after the other, each answered with the status and the JSON (or None) of its reply."""


@dataclass(frozen=True)
class Engine:
    """An engine.

    title: its name in a sentence. raw: how it is made to give raw logits, as "start it with ...". starts: with which
    options it serves a kind of model, for the sentence about a server that has no such page.
    about: what the pages say; None where they are not of this engine. Raises `ReplyError` where it is this engine, but
    cannot be used as it was started.
    request, read: for classifiers. A row is the raw logits of a conversation (`gives` "logits"), or the hidden state of
    its last token, to which the head is applied here (`gives` "states").
    request_implicit, read_implicit: for language models; a row is the log-probability of each token that
    `Conversation.reads` asks for. None where the engine cannot say.
    examine: what is to be found out by requests before anything is scored, where no page tells it. It gets the token
    ids of a conversation, and raises `ReplyError` for a server that was started in a way that cannot be used.
    tokenize, tokens: the request for the token ids of a text, to compare the server's tokenizer with the one here, None
    where it has no such page; and how they are read of its reply.
    texts: it takes texts, not token ids, and adds its tokenizer's own special tokens.
    """

    name: EngineName
    title: str
    raw: str
    starts: Mapping[Kind, str]
    about: Callable[[Pages], ServerInfo | None]
    request: Request
    read: Read
    request_implicit: Request | None = None
    read_implicit: Read | None = None
    examine: Callable[[Sequence[int], ServerInfo], Examination] | None = None
    tokenize: Callable[[str, ServerInfo], EngineRequest] | None = None
    tokens: Callable[[Any], list[int]] = lambda reply: token_ids(field(reply, "tokens"))
    gives: Gives = "logits"
    texts: bool = False


def number(value: Any, what: str = "a score") -> float:
    """A finite number of a reply. Raises `ReplyError` for anything else; JSON's NaN and null among it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ReplyError(f"gave {one_line(value, 40)} as {what}")
    return float(value)


def count(value: Any) -> int | None:
    """A number of things that a page tells, or None where it tells none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def in_order(rows: Any, expected: int) -> list[Any]:
    """The rows of a reply by their `index`, from 0. Raises `ReplyError` for one too few, too many, or twice."""
    if not isinstance(rows, list):
        raise ReplyError(f"sent {type(rows).__name__} where a list of results belongs")
    if len(rows) != expected:
        raise ReplyError(f"sent {len(rows):,} results for {expected:,} conversations")
    try:
        by_index = {int(row["index"]): row for row in rows}
        return [by_index[place] for place in range(expected)]
    except (KeyError, OverflowError, TypeError, ValueError):
        raise ReplyError(f"sent results without an index for each of {expected:,} conversations") from None


def vector(values: Any) -> list[float]:
    """A row of numbers. Raises `ReplyError` for a reply that has a row for each token, and for what is no number."""
    if not isinstance(values, list) or not values:
        raise ReplyError(f"gave {type(values).__name__} where the scores of a conversation belong")
    if isinstance(values[0], list):
        raise ReplyError(
            "scores each token; it must pool the last one (of vLLM: start it for the task classify, not token_classify)"
        )
    return [number(value) for value in values]


def field(reply: Any, name: str) -> Any:
    """What a JSON object has under a name. Raises `ReplyError` where it has nothing, or is none."""
    if not isinstance(reply, dict) or name not in reply:
        raise ReplyError(f"sent a reply without `{name}`")
    return reply[name]


def token_ids(values: Any) -> list[int]:
    """Token ids. Raises `ReplyError`."""
    if not isinstance(values, list):
        raise ReplyError(f"sent {type(values).__name__} where token ids belong")
    return [int(number(value, "a token id")) for value in values]


def tokenize(text: str, about: ServerInfo) -> EngineRequest:
    """The token ids of a text, none added, of a server with the page of vLLM."""
    return EngineRequest("/tokenize", {"model": about.model, "prompt": text, "add_special_tokens": False})


def check_tokens(reply: Any, name: str, conversations: Sequence[Conversation]) -> None:
    """Raise `ReplyError` where a reply was made of another number of tokens than were sent. name: what counts them."""
    counted = reply.get(name) if isinstance(reply, dict) else None
    told = counted.get("prompt_tokens") if isinstance(counted, dict) else None
    sent = sum(len(conversation.ids) for conversation in conversations)
    if told is not None and told != sent:
        raise ReplyError(f"read {told} tokens of {sent:,}, so it cut the input or added to it")
