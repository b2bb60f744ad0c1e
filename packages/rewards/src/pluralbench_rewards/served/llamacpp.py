"""llama.cpp's server as a classifier's trunk: it gives the last token's hidden state, and the head is applied here.

Its own heads (`--pooling rank`) are never used: a softmax or a sigmoid hides the logits, heads of some architectures
are not loaded, and `/embedding` then sends memory that nobody wrote. Seen of the build in xllamacpp 2026.10: token ids
are taken; with the cache of keys and values in F32 and flash attention off a score is that of transformers to 4e-6,
otherwise to 8e-3; no page says how a server pools, so it is found out by a few requests.
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
    field,
    in_order,
    vector,
)

OPTIONS = "--embeddings --pooling last --cache-type-k f32 --cache-type-v f32 --flash-attn off"
SHARED = 64  # tokens that two inputs of the examination have in common
ROUNDING = 1e-3  # how far from 1 the length of a vector may be that was divided by its length


def about(pages: Pages) -> ServerInfo | None:
    """What the pages say; None where they are not llama.cpp's."""
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "llamacpp"]
        names = tuple(str(model["id"]) for model in models)
        props = pages["/props"]
        slot = props["default_generation_settings"]["n_ctx"]
        version = str(props.get("build_info", "of unknown version"))
    except (AttributeError, KeyError, TypeError):
        return None
    # An input that fills its slot is refused.
    return ServerInfo(version, names, max_length=int(slot) - 1) if names else None


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """The hidden states of token ids, as they are."""
    return _states([list(conversation.ids) for conversation in conversations])


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """The hidden state of each conversation's last token."""
    return _rows(reply, len(conversations))


def examine(ids: Sequence[int], about: ServerInfo) -> Examination:
    """Find out whether the server gives the last token's state.

    Two tokens are sent alone, and each after the same others. The states of the last tokens differ about as much
    both times; a mean over all tokens hardly differs, the first token's state not at all.
    """
    # Asked for embeddings, a server that ranks reads memory beyond its own results and may end.
    status, _ = yield EngineRequest("/rerank", {"query": "a", "documents": ["b"]})
    if status == 200:
        raise ReplyError(f"pools for ranking, which hides the logits; start it with {OPTIONS}")
    one = ids[-1]
    other = next((token for token in reversed(ids) if token != one), None)
    if other is None:
        return
    before = list(islice(cycle(ids), min(SHARED, (about.max_length or SHARED) - 1)))
    status, reply = yield _states([[one], [other], [*before, one], [*before, other]])
    if status != 200:
        raise ReplyError(f"gives no hidden states (status {status}); start it with {OPTIONS}")
    alone, other_alone, after, other_after = _rows(reply, 4)
    if math.dist(after, other_after) < 4 / (len(before) + 1) * math.dist(alone, other_alone):
        raise ReplyError(f"does not pool the last token; start it with {OPTIONS}")


def _states(inputs: list[list[int]]) -> EngineRequest:
    return EngineRequest("/embedding", {"content": inputs, "embd_normalize": -1})


def _rows(reply: Any, count: int) -> list[list[float]]:
    states = [_state(field(row, "embedding")) for row in in_order(reply, count)]
    if all(abs(math.hypot(*state) - 1) < ROUNDING for state in states):
        raise ReplyError(
            "divides hidden states by their length, whatever is asked (`embd_normalize`); use a newer llama.cpp"
        )
    return states


def _state(rows: Any) -> list[float]:
    if not isinstance(rows, list) or len(rows) != 1:
        count = len(rows) if isinstance(rows, list) else 0
        raise ReplyError(f"gave {count:,} hidden states of one conversation; start it with {OPTIONS}")
    return vector(rows[0])


def tokenize(text: str, _: ServerInfo) -> EngineRequest:
    """The token ids of a text, none added."""
    return EngineRequest("/tokenize", {"content": text, "add_special": False, "parse_special": True})


LLAMACPP = Engine(
    name="llamacpp",
    title="llama.cpp",
    raw=f"start it with {OPTIONS}",
    starts={"classifier": OPTIONS},
    about=about,
    request=request,
    read=read,
    examine=examine,
    tokenize=tokenize,
    gives="states",
)
