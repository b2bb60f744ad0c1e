"""vLLM: `/classify` for reward models, `/v1/completions` with `prompt_logprobs` for implicit rewards.

Seen of version 0.32: without `use_activation` false a head of one logit comes back through a sigmoid; rows have an
`index`; an input that is too long is status 400; an unknown field of a request is ignored.
"""

from collections.abc import Sequence
from typing import Any

from pluralbench_rewards.served.engine import (
    About,
    Call,
    Conversation,
    Engine,
    Pages,
    ReplyError,
    in_order,
    number,
    vector,
)


def about(pages: Pages) -> About | None:
    """What the pages say; None where they are not vLLM's."""
    try:
        models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == "vllm"]
        version = str(pages["/version"]["version"])
        first = models[0]
        return About(
            version=version,
            models=tuple(str(model["id"]) for model in models),
            root=first.get("root"),
            max_length=first.get("max_model_len"),
        )
    except (KeyError, TypeError, IndexError):
        return None


def request(conversations: Sequence[Conversation], model: str) -> Call:
    """Raw logits of token ids."""
    ids = [list(conversation.ids) for conversation in conversations]
    return Call("/classify", {"model": model, "input": ids, "use_activation": False})


def read(reply: Any, conversations: Sequence[Conversation]) -> list[list[float]]:
    """The logits of each conversation."""
    rows = in_order(_field(reply, "data"), len(conversations))
    return [vector(_field(row, "probs")) for row in rows]


def request_implicit(conversations: Sequence[Conversation], model: str) -> Call:
    """The log-probability of each token that is sent. One more is generated, since none at all is refused."""
    ids = [list(conversation.ids) for conversation in conversations]
    body = {"model": model, "prompt": ids, "prompt_logprobs": 0, "max_tokens": 1, "temperature": 0}
    return Call("/v1/completions", body)


def read_implicit(reply: Any, conversations: Sequence[Conversation]) -> list[list[float]]:
    """The log-probability of the token after each position that is read."""
    rows = in_order(_field(reply, "choices"), len(conversations))
    return [
        _log_probabilities(_field(row, "prompt_logprobs"), conversation)
        for row, conversation in zip(rows, conversations, strict=True)
    ]


def tokenize(text: str, model: str) -> Call:
    """The token ids of a text, none added."""
    return Call("/tokenize", {"model": model, "prompt": text, "add_special_tokens": False})


def tokens(reply: Any) -> list[int]:
    """The token ids of a reply to `tokenize`."""
    return [int(number(token, "a token id")) for token in _field(reply, "tokens")]


def _log_probabilities(entries: Any, conversation: Conversation) -> list[float]:
    if not isinstance(entries, list) or len(entries) != len(conversation.ids):
        raise ReplyError("did not send a log-probability for each token (`prompt_logprobs`)")
    return [
        number(_field(_field(entries[place + 1], str(conversation.ids[place + 1])), "logprob"), "a log-probability")
        for place in conversation.reads
    ]


def _field(reply: Any, name: str) -> Any:
    if not isinstance(reply, dict) or name not in reply:
        raise ReplyError(f"sent a reply without `{name}`")
    return reply[name]


VLLM = Engine(
    name="vllm",
    title="vLLM",
    raw="""start it with --pooler-config '{"use_activation": false}'""",
    about=about,
    request=request,
    read=read,
    request_implicit=request_implicit,
    read_implicit=read_implicit,
    tokenize=tokenize,
    tokens=tokens,
)
