"""Text Embeddings Inference (TEI): `/predict`, for encoders; it takes texts alone and adds their special tokens.

By its documentation and code (version 1.9.3): scores pass a sigmoid or a softmax unless `raw_scores` is true; a
conversation's scores come sorted, so they are told apart by their labels; two texts in one list are a pair.
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
    count,
    field,
    number,
    token_ids,
)

HEADS = ("classifier", "reranker")  # what it calls a head of several logits, and of one


def about(pages: Pages) -> ServerInfo | None:
    """What the page /info says; None where it is not TEI's. Raises `ReplyError` for a model that embeds."""
    info = pages.get("/info")
    if not isinstance(info, dict) or "model_id" not in info or "max_client_batch_size" not in info:
        return None
    kind = info.get("model_type")
    head = next((kind[name] for name in HEADS if isinstance(kind, dict) and name in kind), None)
    if head is None:
        raise ReplyError("embeds texts, so it gives no scores; it must load a sequence classifier")
    try:
        labels = sorted((int(place), str(label)) for place, label in head["id2label"].items())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ReplyError("does not say what its labels are (`id2label` of /info)") from None
    return ServerInfo(
        version=str(info.get("version")),
        models=(str(info["model_id"]),),
        root=str(info["model_id"]),
        max_length=count(info.get("max_input_length")),
        at_once=count(info["max_client_batch_size"]),
        labels=tuple(label for _, label in labels),
    )


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Raw logits of texts. Each stands in a list of its own: of two in one list TEI makes a pair."""
    texts = [[conversation.text] for conversation in conversations]
    return EngineRequest("/predict", {"inputs": texts, "raw_scores": True, "truncate": False})


def read(reply: Any, conversations: Sequence[Conversation], about: ServerInfo) -> list[list[float]]:
    """The logits of each conversation, in the order of the labels."""
    if not isinstance(reply, list) or len(reply) != len(conversations):
        came = len(reply) if isinstance(reply, list) else 0
        raise ReplyError(f"sent {came:,} results for {len(conversations):,} conversations")
    return [_by_label(row, about.labels) for row in reply]


def tokenize(text: str, _: ServerInfo) -> EngineRequest:
    """The token ids of a text, with the special tokens that a prediction adds."""
    return EngineRequest("/tokenize", {"inputs": [text], "add_special_tokens": True})


def tokens(reply: Any) -> list[int]:
    """The token ids of a reply to `tokenize`."""
    if not isinstance(reply, list) or len(reply) != 1 or not isinstance(reply[0], list):
        raise ReplyError("sent no tokens of the text")
    return token_ids([field(token, "id") for token in reply[0]])


def _by_label(row: Any, labels: Sequence[str]) -> list[float]:
    if not isinstance(row, list):
        raise ReplyError(f"gave {type(row).__name__} where the scores of a conversation belong")
    scores = {str(field(entry, "label")): number(field(entry, "score")) for entry in row}
    if len(row) != len(labels) or scores.keys() != set(labels):
        raise ReplyError(f"gave scores of the labels {', '.join(scores)} in place of {', '.join(labels)}")
    return [scores[label] for label in labels]


TEI = Engine(
    name="tei",
    title="TEI",
    raw="send `raw_scores` on, which something before it leaves out",
    starts={"classifier": "a sequence classifier as --model-id"},
    about=about,
    request=request,
    read=read,
    tokenize=tokenize,
    tokens=tokens,
    texts=True,
)
