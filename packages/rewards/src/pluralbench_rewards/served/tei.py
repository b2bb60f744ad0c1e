"""Text Embeddings Inference (TEI): `/predict` for encoders, which accepts only text and adds special tokens.

By its documentation and code (version 1.9.3): scores pass a sigmoid or softmax unless `raw_scores` is true; the scores
of a conversation are sorted by value and identified by their labels; two texts in one list are a pair.
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

HEADS = ("classifier", "reranker")  # its names of heads with several logits and with one


def identify(pages: Pages) -> ServerInfo | None:
    """Read the page /info; None if it is not TEI's. Raises `ReplyError` for an embedding model."""
    info = pages.get("/info")
    if not isinstance(info, dict) or "model_id" not in info or "max_client_batch_size" not in info:
        return None
    kind = info.get("model_type")
    head = next((kind[name] for name in HEADS if isinstance(kind, dict) and name in kind), None)
    if head is None:
        raise ReplyError("embeds texts and returns no scores; it must load a sequence classifier")
    try:
        labels = sorted((int(index), str(label)) for index, label in head["id2label"].items())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ReplyError("does not list its labels (`id2label` of /info)") from None
    return ServerInfo(
        version=str(info.get("version")),
        models=(str(info["model_id"]),),
        root=str(info["model_id"]),
        max_length=count(info.get("max_input_length")),
        max_inputs=count(info["max_client_batch_size"]),
        labels=tuple(label for _, label in labels),
    )


def request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Request the raw logits of texts, each in its own list because two in one list are a pair."""
    texts = [[conversation.text] for conversation in conversations]
    return EngineRequest("/predict", {"inputs": texts, "raw_scores": True, "truncate": False})


def read(reply: Any, conversations: Sequence[Conversation], info: ServerInfo) -> list[list[float]]:
    """Read the logits of each conversation, in the order of the labels."""
    if not isinstance(reply, list) or len(reply) != len(conversations):
        received = len(reply) if isinstance(reply, list) else 0
        raise ReplyError(f"sent {received:,} results for {len(conversations):,} conversations")
    return [_by_label(row, info.labels) for row in reply]


def tokenize(text: str, _: ServerInfo) -> EngineRequest:
    """Request the token ids of a text, with the special tokens that a prediction adds."""
    return EngineRequest("/tokenize", {"inputs": [text], "add_special_tokens": True})


def tokens(reply: Any) -> list[int]:
    """Read the token ids of a reply to `tokenize`."""
    if not isinstance(reply, list) or len(reply) != 1 or not isinstance(reply[0], list):
        raise ReplyError("sent no tokens of the text")
    return token_ids([field(token, "id") for token in reply[0]])


def _by_label(row: Any, labels: Sequence[str]) -> list[float]:
    if not isinstance(row, list):
        raise ReplyError(f"sent {type(row).__name__} instead of the scores of a conversation")
    scores = {str(field(entry, "label")): number(field(entry, "score")) for entry in row}
    if len(row) != len(labels) or scores.keys() != set(labels):
        raise ReplyError(f"sent scores of the labels {', '.join(scores)} instead of {', '.join(labels)}")
    return [scores[label] for label in labels]


TEI = Engine(
    name="tei",
    title="TEI",
    raw_logits_hint="make the proxy before it pass on `raw_scores`",
    start_options={"classifier": "a sequence classifier as --model-id"},
    identify=identify,
    request=request,
    read=read,
    tokenize=tokenize,
    tokens=tokens,
    takes_text=True,
)
