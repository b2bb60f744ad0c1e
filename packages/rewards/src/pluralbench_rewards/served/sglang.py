"""SGLang: `/classify`, which accepts token ids and returns the raw output of the head.

`/v1/classify` is not used, because its softmax over one logit is always 1.0. Observed with version 0.5.23: the results
of a batch are a list in its order; an id outside the vocabulary, or a chat request to a server started with
`--is-embedding`, ends the server.
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


def identify(pages: Pages) -> ServerInfo | None:
    """Read the pages; None if they are not SGLang's. Raises `ReplyError` for a server that generates text."""
    info = pages.get("/model_info") or pages.get("/get_model_info") or {}
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "sglang"]
        names, longest = tuple(str(model["id"]) for model in models), count(models[0].get("max_model_len"))
        root, generates = str(info["model_path"]), info.get("is_generation", False)
    except (AttributeError, KeyError, TypeError, IndexError):
        return None
    if generates:
        raise ReplyError("generates text and returns no scores; start it with --is-embedding")
    server = pages.get("/server_info")
    version = str(server["version"]) if isinstance(server, dict) and "version" in server else "of unknown version"
    return ServerInfo(version=version, models=names, root=root, max_length=longest)


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Request the raw logits of token ids."""
    return EngineRequest("/classify", {"input_ids": [list(conversation.ids) for conversation in conversations]})


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """Read the logits of each conversation."""
    rows = [reply] if isinstance(reply, dict) else reply
    if not isinstance(rows, list) or len(rows) != len(conversations):
        received = len(rows) if isinstance(rows, list) else 0
        raise ReplyError(f"sent {received:,} results for {len(conversations):,} conversations")
    values = [vector(field(row, "embedding")) for row in rows]
    for row, conversation in zip(rows, conversations, strict=True):
        check_tokens(row, "meta_info", [conversation])
    return values


SGLANG = Engine(
    name="sglang",
    title="SGLang",
    raw_logits_hint="use /classify of SGLang itself, without a gateway that uses /v1/classify instead",
    start_options={"classifier": "--is-embedding"},
    identify=identify,
    request=request,
    read=read,
    tokenize=tokenize,
)
