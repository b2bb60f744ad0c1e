"""llama.cpp's server as the backbone of a classifier: it returns the last hidden state, the client applies the head.

Its own heads (`--pooling rank`) are not used: a softmax or sigmoid hides the logits, heads of some architectures are
not loaded, and `/embedding` then returns uninitialized memory. Observed with the build in xllamacpp 2026.10: it accepts
token ids; with an F32 KV cache and without flash attention, scores equal those of transformers to 4e-6, otherwise to
8e-3. No page shows the pooling of a server, so a few requests examine it.
"""

import math
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from pluralbench_rewards.served.engine import (
    Conversation,
    Engine,
    EngineRequest,
    Examination,
    Pages,
    ReplyError,
    ServerInfo,
    count,
    field,
    in_order,
    vector,
)

OPTIONS = "--embeddings --pooling last --cache-type-k f32 --cache-type-v f32 --flash-attn off"
PREFIX_TOKENS = 64  # shared by two inputs of the examination
ROUNDING = 1e-3  # how far the norm of a normalized vector may be from 1


def identify(pages: Pages) -> ServerInfo | None:
    """Read the pages; None if they are not llama.cpp's."""
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "llamacpp"]
        names = tuple(str(model["id"]) for model in models)
        props = pages["/props"]
        slot = count(props["default_generation_settings"]["n_ctx"])
        version = str(props.get("build_info", "of unknown version"))
    except (AttributeError, KeyError, TypeError):
        return None
    # An input that fills its slot is rejected.
    return ServerInfo(version, names, max_length=slot and slot - 1) if names else None


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Request the hidden states of token ids, not normalized."""
    return _states([list(conversation.ids) for conversation in conversations])


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """Read the hidden state of each conversation's last token."""
    return _rows(reply, len(conversations))


def examine(ids: Sequence[int], info: ServerInfo) -> Examination:
    """Check that the server returns the state of the last token.

    Two tokens are sent alone, and each after the same prefix. With last-token pooling the states differ about equally
    in both cases. With mean pooling they hardly differ after the prefix, with first-token pooling not at all.
    """
    # A ranking server that is asked for embeddings reads memory beyond its results and may crash.
    status, _ = yield EngineRequest("/rerank", {"query": "a", "documents": ["b"]})
    if status == 200:
        raise ReplyError(f"pools for ranking, which hides the logits; start it with {OPTIONS}")
    first = ids[-1]
    second = next((token for token in reversed(ids) if token != first), None)
    if second is None:
        return
    prefix = list(islice(cycle(ids), min(PREFIX_TOKENS, (info.max_length or PREFIX_TOKENS) - 1)))
    status, reply = yield _states([[first], [second], [*prefix, first], [*prefix, second]])
    if status != 200:
        raise ReplyError(f"returns no hidden states (status {status}); start it with {OPTIONS}")
    first_alone, second_alone, first_after, second_after = _rows(reply, 4)
    if math.dist(first_after, second_after) < 4 / (len(prefix) + 1) * math.dist(first_alone, second_alone):
        raise ReplyError(f"does not pool the last token; start it with {OPTIONS}")


def _states(inputs: list[list[int]]) -> EngineRequest:
    return EngineRequest("/embedding", {"content": inputs, "embd_normalize": -1})


def _rows(reply: Any, count: int) -> list[list[float]]:
    states = [_state(field(row, "embedding")) for row in in_order(reply, count)]
    if all(abs(math.hypot(*state) - 1) < ROUNDING for state in states):
        raise ReplyError("normalizes hidden states although `embd_normalize` is -1; use a newer llama.cpp")
    return states


def _state(rows: Any) -> list[float]:
    if not isinstance(rows, list) or len(rows) != 1:
        count = len(rows) if isinstance(rows, list) else 0
        raise ReplyError(f"sent {count:,} hidden states of one conversation; start it with {OPTIONS}")
    return vector(rows[0])


def tokenize(text: str, _: ServerInfo) -> EngineRequest:
    """Request the token ids of a text without special tokens."""
    return EngineRequest("/tokenize", {"content": text, "add_special": False, "parse_special": True})


LLAMACPP = Engine(
    name="llamacpp",
    title="llama.cpp",
    raw_logits_hint=f"start it with {OPTIONS}",
    start_options={"classifier": OPTIONS},
    identify=identify,
    request=request,
    read=read,
    examine=examine,
    tokenize=tokenize,
    output="states",
)
