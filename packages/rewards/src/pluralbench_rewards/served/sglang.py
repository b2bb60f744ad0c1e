"""SGLang: its own `/classify`, which takes token ids and gives the head's raw output.

Its `/v1/classify` puts a softmax over one logit and says 1.0 of everything, so it is not used. Seen of version 0.5.23:
a batch comes back as a list in its order; an id outside the vocabulary, or a chat request to a server that was started
with `--is-embedding`, ends the server.
"""

from collections.abc import Sequence
from typing import Any

from pluralbench_rewards.served.engine import (
    Conversation,
    Engine,
    EngineRequest,
    Pages,
    ReplyError,
    ServerInfo,
    check_tokens,
    count,
    field,
    tokenize,
    vector,
)


def about(pages: Pages) -> ServerInfo | None:
    """What the pages say; None where they are not SGLang's. Raises `ReplyError` for one that generates."""
    info = pages.get("/model_info") or pages.get("/get_model_info") or {}
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "sglang"]
        names, longest = tuple(str(model["id"]) for model in models), count(models[0].get("max_model_len"))
        root, generates = str(info["model_path"]), info.get("is_generation", False)
    except (AttributeError, KeyError, TypeError, IndexError):
        return None
    if generates:
        raise ReplyError("generates text, so it gives no scores; start it with --is-embedding")
    told = pages.get("/server_info")
    version = str(told["version"]) if isinstance(told, dict) and "version" in told else "of unknown version"
    return ServerInfo(version=version, models=names, root=root, max_length=longest)


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Raw logits of token ids."""
    return EngineRequest("/classify", {"input_ids": [list(conversation.ids) for conversation in conversations]})


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """The logits of each conversation."""
    rows = [reply] if isinstance(reply, dict) else reply
    if not isinstance(rows, list) or len(rows) != len(conversations):
        came = len(rows) if isinstance(rows, list) else 0
        raise ReplyError(f"sent {came:,} results for {len(conversations):,} conversations")
    values = [vector(field(row, "embedding")) for row in rows]
    for row, conversation in zip(rows, conversations, strict=True):
        check_tokens(row, "meta_info", [conversation])
    return values


SGLANG = Engine(
    name="sglang",
    title="SGLang",
    raw="ask the page /classify of SGLang itself, without a gateway that asks /v1/classify in its place",
    starts={"classifier": "--is-embedding"},
    about=about,
    request=request,
    read=read,
    tokenize=tokenize,
)
