"""vLLM: `/classify` for reward models, `/v1/completions` with `prompt_logprobs` for implicit rewards.

Seen of version 0.32: without `use_activation` false a head of one logit comes back through a sigmoid; rows have an
`index`; an input that is too long is status 400; an unknown field of a request is ignored.
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


def about(pages: Pages) -> ServerInfo | None:
    """What the pages say; None where they are not vLLM's."""
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


def request(conversations: Sequence[Conversation], about: ServerInfo) -> EngineRequest:
    """Raw logits of token ids."""
    ids = [list(conversation.ids) for conversation in conversations]
    return EngineRequest("/classify", {"model": about.model, "input": ids, "use_activation": False})


def read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """The logits of each conversation."""
    rows = in_order(field(reply, "data"), len(conversations))
    values = [vector(field(row, "probs")) for row in rows]
    check_tokens(reply, "usage", conversations)
    return values


def request_implicit(conversations: Sequence[Conversation], about: ServerInfo) -> EngineRequest:
    """The log-probability of each token that is sent. One more is generated, since none at all is refused."""
    ids = [list(conversation.ids) for conversation in conversations]
    body = {"model": about.model, "prompt": ids, "prompt_logprobs": 0, "max_tokens": 1, "temperature": 0}
    return EngineRequest("/v1/completions", body)


def read_implicit(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    """The log-probability of the token after each position that is read."""
    rows = in_order(field(reply, "choices"), len(conversations))
    return [
        _log_probabilities(field(row, "prompt_logprobs"), conversation)
        for row, conversation in zip(rows, conversations, strict=True)
    ]


def _log_probabilities(entries: Any, conversation: Conversation) -> list[float]:
    if not isinstance(entries, list) or len(entries) != len(conversation.ids):
        raise ReplyError("did not send a log-probability for each token (`prompt_logprobs`)")
    # With `prompt_logprobs` 0 an entry holds the token that stands there, and no other.
    told = [(entries[place + 1], str(conversation.ids[place + 1])) for place in conversation.reads]
    return [number(field(field(entry, token), "logprob"), "a log-probability") for entry, token in told]


VLLM = Engine(
    name="vllm",
    title="vLLM",
    raw="""start it with --pooler-config '{"use_activation": false}'""",
    starts={"classifier": "--runner pooling", "implicit": "--runner generate"},
    about=about,
    request=request,
    read=read,
    request_implicit=request_implicit,
    read_implicit=read_implicit,
    tokenize=tokenize,
)
