"""vLLM: `/classify` for reward models, `/v1/completions` with `prompt_logprobs` for implicit rewards.

Observed with version 0.32: unless `use_activation` is false, the logit of a head with one label passes a sigmoid; rows
have an `index`; an input that is too long gets status 400; unknown fields of a request are ignored.
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
    in_order,
    number,
    tokenize,
    vector,
)


def identify(pages: Pages) -> ServerInfo | None:
    """Read the pages; None if they are not vLLM's."""
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "vllm"]
        return ServerInfo(
            version=str(pages["/version"]["version"]),
            models=tuple(str(model["id"]) for model in models),
            root=str(models[0].get("root") or models[0]["id"]),
            max_length=count(models[0].get("max_model_len")),
        )
    except (KeyError, TypeError, IndexError):
        return None


def request(conversations: Sequence[Conversation], info: ServerInfo) -> EngineRequest:
    """Request the raw logits of token ids."""
    ids = [list(conversation.ids) for conversation in conversations]
    return EngineRequest("/classify", {"model": info.model, "input": ids, "use_activation": False})


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """Read the logits of each conversation."""
    rows = in_order(field(reply, "data"), len(conversations))
    values = [vector(field(row, "probs")) for row in rows]
    check_tokens(reply, "usage", conversations)
    return values


def request_implicit(conversations: Sequence[Conversation], info: ServerInfo) -> EngineRequest:
    """Request the log-probability of each sent token. One token is generated, because 0 is rejected."""
    ids = [list(conversation.ids) for conversation in conversations]
    body = {"model": info.model, "prompt": ids, "prompt_logprobs": 0, "max_tokens": 1, "temperature": 0}
    return EngineRequest("/v1/completions", body)


def read_implicit(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """Read the log-probability of the token after each position in `Conversation.reads`."""
    rows = in_order(field(reply, "choices"), len(conversations))
    return [
        _log_probabilities(field(row, "prompt_logprobs"), conversation)
        for row, conversation in zip(rows, conversations, strict=True)
    ]


def _log_probabilities(entries: Any, conversation: Conversation) -> list[float]:
    if not isinstance(entries, list) or len(entries) != len(conversation.ids):
        raise ReplyError("did not send a log-probability for each token (`prompt_logprobs`)")
    # With `prompt_logprobs` 0 an entry has only the token of the prompt.
    tokens = [(entries[index + 1], str(conversation.ids[index + 1])) for index in conversation.reads]
    return [number(field(field(entry, token), "logprob"), "a log-probability") for entry, token in tokens]


VLLM = Engine(
    name="vllm",
    title="vLLM",
    raw_logits_hint="""start it with --pooler-config '{"use_activation": false}'""",
    start_options={"classifier": "--runner pooling", "implicit": "--runner generate"},
    identify=identify,
    request=request,
    read=read,
    request_implicit=request_implicit,
    read_implicit=read_implicit,
    tokenize=tokenize,
)
