"""The inference engines: how each is recognized and asked, and how its replies are read; a section each."""

import math
from collections.abc import Sequence
from functools import partial
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
    check_tokens,
    count,
    field,
    in_order,
    log_probability,
    number,
    rows_of,
    token_ids,
    tokenize,
    vector,
)

ROUNDING = 1e-3  # how far the norm of a normalized vector, and the sum of probabilities, may be from 1


def _models(pages: Pages, owner: str) -> tuple[dict[str, Any], tuple[str, ...], int | None]:
    """Return the first model of an engine's page, the names of all, and the first one's maximum length."""
    models = [model for model in pages["/v1/models"]["data"] if model["owned_by"] == owner]
    return models[0], tuple(str(model["id"]) for model in models), count(models[0].get("max_model_len"))


def _request_tokens(path: str, conversations: Sequence[Conversation], info: ServerInfo) -> EngineRequest:
    """Request the probabilities of the label tokens among the labels, after token ids (vLLM, SGLang)."""
    body = {"model": info.model, "query": [], "items": [list(conversation.ids) for conversation in conversations]}
    labels = list(conversations[0].labels)
    return EngineRequest(path, body | {"label_token_ids": labels, "apply_softmax": True})


# vLLM: `/classify` for reward models, `/v1/completions` with `prompt_logprobs` for implicit rewards, and for token
# rewards `/classify` of a classifier made of rows of the language model's head, or `/generative_scoring`.
#
# Observed with version 0.32: unless `use_activation` is false, the logit of a head with one label passes a sigmoid;
# rows have an `index`; an input that is too long gets status 400, but is cut by `/generative_scoring` (its count of
# tokens shows it); unknown fields of a request are ignored.


def _vllm_identify(pages: Pages) -> ServerInfo | None:
    try:
        first, names, longest = _models(pages, "vllm")
        root = str(first.get("root") or first["id"])
        return ServerInfo(str(pages["/version"]["version"]), names, root=root, max_length=longest)
    except (KeyError, TypeError, IndexError):
        return None


def _vllm_request(conversations: Sequence[Conversation], info: ServerInfo) -> EngineRequest:
    ids = [list(conversation.ids) for conversation in conversations]
    return EngineRequest("/classify", {"model": info.model, "input": ids, "use_activation": False})


def _vllm_read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    rows = in_order(field(reply, "data"), len(conversations))
    values = [vector(field(row, "probs")) for row in rows]
    check_tokens(reply, "usage", conversations)
    return values


def _vllm_request_implicit(conversations: Sequence[Conversation], info: ServerInfo) -> EngineRequest:
    """Request the log-probability of each sent token. One token is generated, because 0 is rejected."""
    ids = [list(conversation.ids) for conversation in conversations]
    body = {"model": info.model, "prompt": ids, "prompt_logprobs": 0, "max_tokens": 1, "temperature": 0}
    return EngineRequest("/v1/completions", body)


def _vllm_read_implicit(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    rows = in_order(field(reply, "choices"), len(conversations))
    return [
        _vllm_log_probabilities(field(row, "prompt_logprobs"), conversation)
        for row, conversation in zip(rows, conversations, strict=True)
    ]


def _vllm_log_probabilities(entries: Any, conversation: Conversation) -> list[float]:
    if not isinstance(entries, list) or len(entries) != len(conversation.ids):
        raise ReplyError("did not send a log-probability for each token (`prompt_logprobs`)")
    # With `prompt_logprobs` 0 an entry has only the token of the prompt.
    tokens = [(entries[index + 1], str(conversation.ids[index + 1])) for index in conversation.reads]
    return [number(field(field(entry, token), "logprob"), "a log-probability") for entry, token in tokens]


def _vllm_read_tokens(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    rows = in_order(field(reply, "data"), len(conversations))
    check_tokens(reply, "usage", conversations)
    scores = [field(row, "score") for row in rows]
    return [[log_probability(score), log_probability(1 - number(score, "a probability"))] for score in scores]


VLLM = Engine(
    name="vllm",
    title="vLLM",
    raw_logits_hint="""start it with --pooler-config '{"use_activation": false}'""",
    start_options={
        "classifier": "--runner pooling",
        "implicit": "--runner generate",
        "token": "--runner generate",
    },
    identify=_vllm_identify,
    request=_vllm_request,
    read=_vllm_read,
    request_implicit=_vllm_request_implicit,
    read_implicit=_vllm_read_implicit,
    request_tokens=partial(_request_tokens, "/generative_scoring"),
    read_tokens=_vllm_read_tokens,
    tokenize=tokenize,
)


# SGLang: `/classify`, which accepts token ids and returns the raw output of the head; for token rewards `/v1/score` of
# a server that generates.
#
# `/v1/classify` is not used, because its softmax over one logit is always 1.0. Observed with version 0.5.23: the
# results of a batch are a list in its order; an id outside the vocabulary, or a chat request to a server started with
# `--is-embedding`, ends the server.


def _sglang_identify(pages: Pages) -> ServerInfo | None:
    info = pages.get("/model_info") or pages.get("/get_model_info") or {}
    try:
        _, names, longest = _models(pages, "sglang")
        root, generates = str(info["model_path"]), bool(info.get("is_generation", False))
    except (AttributeError, KeyError, TypeError, IndexError):
        return None
    server = pages.get("/server_info")
    version = str(server["version"]) if isinstance(server, dict) and "version" in server else "of unknown version"
    return ServerInfo(version, names, root=root, max_length=longest, generates=generates)


def _sglang_request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    return EngineRequest("/classify", {"input_ids": [list(conversation.ids) for conversation in conversations]})


def _sglang_read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    rows = rows_of([reply] if isinstance(reply, dict) else reply, len(conversations))
    values = [vector(field(row, "embedding")) for row in rows]
    for row, conversation in zip(rows, conversations, strict=True):
        check_tokens(row, "meta_info", [conversation])
    return values


def _sglang_read_tokens(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    rows = rows_of(field(reply, "scores"), len(conversations))
    check_tokens(reply, "usage", conversations)
    values = [vector(row) for row in rows]
    labels = len(conversations[0].labels)
    if any(len(row) != labels or abs(math.fsum(row) - 1) > ROUNDING for row in values):
        raise ReplyError(f"did not send the probabilities of {labels} tokens, which sum to 1")
    return [[log_probability(value) for value in row] for row in values]


SGLANG = Engine(
    name="sglang",
    title="SGLang",
    raw_logits_hint="use /classify of SGLang itself, without a gateway that uses /v1/classify instead",
    start_options={"classifier": "--is-embedding", "token": "a language model, without --is-embedding"},
    identify=_sglang_identify,
    request=_sglang_request,
    read=_sglang_read,
    request_tokens=partial(_request_tokens, "/v1/score"),
    read_tokens=_sglang_read_tokens,
    tokenize=tokenize,
)


# Text Embeddings Inference (TEI): `/predict` for encoders, which accepts only text and adds special tokens.
#
# By its documentation and code (version 1.9.3): scores pass a sigmoid or softmax unless `raw_scores` is true; the
# scores of a conversation are sorted by value and identified by their labels; two texts in one list are a pair.

TEI_HEADS = ("classifier", "reranker")  # its names of heads with several logits and with one


def _tei_identify(pages: Pages) -> ServerInfo | None:
    """Raises `ReplyError` for an embedding model."""
    info = pages.get("/info")
    if not isinstance(info, dict) or "model_id" not in info or "max_client_batch_size" not in info:
        return None
    kind = info.get("model_type")
    head = next((kind[name] for name in TEI_HEADS if isinstance(kind, dict) and name in kind), None)
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


def _tei_request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    """Request the raw logits of texts, each in its own list because two in one list are a pair."""
    texts = [[conversation.text] for conversation in conversations]
    return EngineRequest("/predict", {"inputs": texts, "raw_scores": True, "truncate": False})


def _tei_read(reply: Any, conversations: Sequence[Conversation], info: ServerInfo) -> list[list[float]]:
    return [_tei_by_label(row, info.labels) for row in rows_of(reply, len(conversations))]


def _tei_tokenize(text: str, _: ServerInfo) -> EngineRequest:
    """Request the token ids of a text, with the special tokens that a prediction adds."""
    return EngineRequest("/tokenize", {"inputs": [text], "add_special_tokens": True})


def _tei_tokens(reply: Any) -> list[int]:
    if not isinstance(reply, list) or len(reply) != 1 or not isinstance(reply[0], list):
        raise ReplyError("sent no tokens of the text")
    return token_ids([field(token, "id") for token in reply[0]])


def _tei_by_label(row: Any, labels: Sequence[str]) -> list[float]:
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
    identify=_tei_identify,
    request=_tei_request,
    read=_tei_read,
    tokenize=_tei_tokenize,
    tokens=_tei_tokens,
    takes_text=True,
)


# llama.cpp's server as the backbone of a classifier: it returns the last hidden state, the client applies the head.
#
# Its own heads (`--pooling rank`) are not used: a softmax or sigmoid hides the logits, heads of some architectures are
# not loaded, and `/embedding` then returns uninitialized memory. Observed with the build in xllamacpp 2026.10: it
# accepts token ids; with an F32 KV cache and without flash attention, scores equal those of transformers to 4e-6,
# otherwise to 8e-3. No page shows the pooling of a server, so a few requests examine it.

LLAMACPP_OPTIONS = "--embeddings --pooling last --cache-type-k f32 --cache-type-v f32 --flash-attn off"
PREFIX_TOKENS = 64  # shared by two inputs of the examination


def _llamacpp_identify(pages: Pages) -> ServerInfo | None:
    try:
        names = tuple(str(model["id"]) for model in pages["/v1/models"]["data"] if model["owned_by"] == "llamacpp")
        props = pages["/props"]
        slot = count(props["default_generation_settings"]["n_ctx"])
        version = str(props.get("build_info", "of unknown version"))
    except (AttributeError, KeyError, TypeError):
        return None
    # An input that fills its slot is rejected.
    return ServerInfo(version, names, max_length=slot and slot - 1) if names else None


def _llamacpp_request(conversations: Sequence[Conversation], _: ServerInfo) -> EngineRequest:
    return _llamacpp_states([list(conversation.ids) for conversation in conversations])


def _llamacpp_read(reply: Any, conversations: Sequence[Conversation], _: ServerInfo) -> list[list[float]]:
    return _llamacpp_rows(reply, len(conversations))


def _llamacpp_examine(ids: Sequence[int], info: ServerInfo) -> Examination:
    """Check that the server returns the state of the last token.

    Two tokens are sent alone, and each after the same prefix. With last-token pooling the states differ about equally
    in both cases. With mean pooling they hardly differ after the prefix, with first-token pooling not at all.
    """
    # A ranking server that is asked for embeddings reads memory beyond its results and may crash.
    status, _ = yield EngineRequest("/rerank", {"query": "a", "documents": ["b"]})
    if status == 200:
        raise ReplyError(f"pools for ranking, which hides the logits; start it with {LLAMACPP_OPTIONS}")
    first = ids[-1]
    second = next((token for token in reversed(ids) if token != first), None)
    if second is None:
        return
    prefix = list(islice(cycle(ids), min(PREFIX_TOKENS, (info.max_length or PREFIX_TOKENS) - 1)))
    status, reply = yield _llamacpp_states([[first], [second], [*prefix, first], [*prefix, second]])
    if status != 200:
        raise ReplyError(f"returns no hidden states (status {status}); start it with {LLAMACPP_OPTIONS}")
    first_alone, second_alone, first_after, second_after = _llamacpp_rows(reply, 4)
    if math.dist(first_after, second_after) < 4 / (len(prefix) + 1) * math.dist(first_alone, second_alone):
        raise ReplyError(f"does not pool the last token; start it with {LLAMACPP_OPTIONS}")


def _llamacpp_states(inputs: list[list[int]]) -> EngineRequest:
    return EngineRequest("/embedding", {"content": inputs, "embd_normalize": -1})


def _llamacpp_rows(reply: Any, count: int) -> list[list[float]]:
    states = [_llamacpp_state(field(row, "embedding")) for row in in_order(reply, count)]
    if all(abs(math.hypot(*state) - 1) < ROUNDING for state in states):
        raise ReplyError("normalizes hidden states although `embd_normalize` is -1; use a newer llama.cpp")
    return states


def _llamacpp_state(rows: Any) -> list[float]:
    if not isinstance(rows, list) or len(rows) != 1:
        count = len(rows) if isinstance(rows, list) else 0
        raise ReplyError(f"sent {count:,} hidden states of one conversation; start it with {LLAMACPP_OPTIONS}")
    return vector(rows[0])


def _llamacpp_tokenize(text: str, _: ServerInfo) -> EngineRequest:
    return EngineRequest("/tokenize", {"content": text, "add_special": False, "parse_special": True})


LLAMACPP = Engine(
    name="llamacpp",
    title="llama.cpp",
    raw_logits_hint=f"start it with {LLAMACPP_OPTIONS}",
    start_options={"classifier": LLAMACPP_OPTIONS},
    identify=_llamacpp_identify,
    request=_llamacpp_request,
    read=_llamacpp_read,
    examine=_llamacpp_examine,
    tokenize=_llamacpp_tokenize,
    output="states",
)


# `pluralbench serve`, which answers vLLM's `/classify` with rewards.


def _pluralbench_identify(pages: Pages) -> ServerInfo | None:
    try:
        _, names, longest = _models(pages, "pluralbench")
        return ServerInfo(str(pages["/version"]["version"]), names[:1], root=names[0], max_length=longest)
    except (KeyError, TypeError, IndexError):
        return None


PLURALBENCH = Engine(
    name="pluralbench",
    title="pluralbench serve",
    raw_logits_hint="use its own address",
    start_options=dict.fromkeys(("classifier", "token"), "the options of the model"),
    identify=_pluralbench_identify,
    request=_vllm_request,
    read=_vllm_read,
    request_tokens=_vllm_request,
    read_tokens=_vllm_read,
    output="rewards",
)


ENGINES: tuple[Engine, ...] = (VLLM, SGLANG, TEI, LLAMACPP, PLURALBENCH)
