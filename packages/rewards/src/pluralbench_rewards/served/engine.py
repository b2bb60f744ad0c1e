"""What an engine is to the path that scores through servers: its pages, its requests, its replies. One file an engine.

An engine file holds plain functions and one `Engine` made of them. Nothing in it opens a connection: a function makes a
request or reads a reply, both plain JSON, and `pool` sends them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluralbench_rewards.errors import RewardsError

EngineName = Literal["vllm", "sglang", "tei", "llamacpp"]
Kind = Literal["classifier", "implicit"]
Gives = Literal["logits", "states"]

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
    """A conversation as it is sent. ids: its tokens, special ones included. text: as the chat template renders it.

    reads: for an implicit reward the positions whose following token is scored: the log-probability of `ids[r + 1]` for
    each `r` of them is part of the reward.
    """

    ids: Sequence[int]
    text: str
    reads: range


@dataclass(frozen=True)
class Call:
    """A request: a POST of this JSON to this path below the server's URL."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True)
class About:
    """What a server's pages say of it.

    models: names that a request may give, the first by default. root: the folder or ORG/NAME that it loaded, where that
    is told. max_length: the most tokens of an input. at_once: the most inputs of a request, None for any number.
    """

    version: str
    models: tuple[str, ...]
    root: str | None = None
    max_length: int | None = None
    at_once: int | None = None


@dataclass(frozen=True)
class Engine:
    """An engine.

    title: its name in a sentence. raw: how it is made to give raw logits, the end of a sentence: "start it with ...".
    about: what the pages say, None where they are not of this engine.
    request: one request for these conversations, of the model of this name. At most `About.at_once` are given.
    read: from the JSON of a reply (status 200) and the conversations that were asked for, in their order: for each its
    row of raw logits (`gives` "logits"), or the last token's hidden state, to which the head is applied here (`gives`
    "states"). Raises `ReplyError`; `replies` has what is common.
    request_implicit, read_implicit: the same for language models; a row is the log-probability of each token that
    `Conversation.reads` asks for. None where the engine cannot say.
    tokenize, tokens: the request for the token ids of a text and how they are read of its reply, to compare the
    server's tokenizer with the one here; None where it has no such page.
    texts: it takes texts, not token ids, and adds its own special tokens; the ids must come out as they are here.
    """

    name: EngineName
    title: str
    raw: str
    about: Callable[[Pages], About | None]
    request: Callable[[Sequence[Conversation], str], Call]
    read: Callable[[Any, Sequence[Conversation]], list[list[float]]]
    request_implicit: Callable[[Sequence[Conversation], str], Call] | None = None
    read_implicit: Callable[[Any, Sequence[Conversation]], list[list[float]]] | None = None
    tokenize: Callable[[str, str], Call] | None = None
    tokens: Callable[[Any], list[int]] | None = None
    gives: Gives = "logits"
    texts: bool = False


def number(value: Any, what: str = "a score") -> float:
    """A finite number of a reply. Raises `ReplyError` for anything else; JSON's NaN and null among it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ReplyError(f"gave {value!r} as {what}")
    return float(value)


def in_order(rows: Any, count: int) -> list[Any]:
    """The rows of a reply by their `index`, from 0. Raises `ReplyError` for one too few, too many, or twice."""
    if not isinstance(rows, list):
        raise ReplyError(f"sent {type(rows).__name__} where a list of results belongs")
    if len(rows) != count:
        raise ReplyError(f"sent {len(rows):,} results for {count:,} conversations")
    try:
        by_index = {int(row["index"]): row for row in rows}
        return [by_index[place] for place in range(count)]
    except (KeyError, TypeError, ValueError):
        raise ReplyError(f"sent results without an index for each of {count:,} conversations") from None


def vector(values: Any) -> list[float]:
    """A row of numbers. Raises `ReplyError` for a reply that has a row for each token, and for what is no number."""
    if not isinstance(values, list) or not values:
        raise ReplyError(f"gave {type(values).__name__} where the scores of a conversation belong")
    if isinstance(values[0], list):
        raise ReplyError(
            "scores each token; it must pool the last one (of vLLM: start it for the task classify, not token_classify)"
        )
    return [number(value) for value in values]
