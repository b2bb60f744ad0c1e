"""Loopback servers that answer as vLLM, SGLang and TEI do, with a real tiny model behind them, and with chosen faults.

What they reproduce was seen of vLLM 0.32 and SGLang 0.5.23, and read of TEI 1.9.3: a sigmoid where raw scores are not
asked for, special tokens added to texts, rows with an index, sorted labels, refusals and their forms, and the two
requests that end SGLang.
"""

import json
import math
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from listening import QuietHandler, listening
from reward_models import load_plainly, logits_at_the_end

Json = Any
Spoil = Callable[[Json, int], Json]
"""From a good reply and the number of the scoring request (from 0) to what is sent in its place."""

MOST_AT_ONCE = 32  # of TEI


class Refusal(Exception):
    """A reply of another status than 200. body: as the engine writes it."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


class Ended(Exception):
    """The request ends the server."""


@dataclass
class Imitation:
    """A server that runs. posts: each POST, its path and its JSON. offset: added to every logit, as a random bias is.

    kind: classifier, implicit or token (both of a server that generates), or rows: a classifier whose logits are those
    of the tokens `rows` of a language model.
    ends_after: the number of scoring requests after which nobody answers any more. html: everything is a web page.
    """

    engine: str
    folder: str
    kind: str = "classifier"
    rows: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    root: str = ""
    max_length: int = 1024
    offset: float = 0.0
    activated: bool = False
    ends_after: int | None = None
    busy: int = 0
    html: bool = False
    spoil: Spoil | None = None
    url: str = ""
    posts: list[tuple[str, Json]] = field(default_factory=list)
    ended: bool = False
    scored: int = 0
    shown: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedTokenizerFast

        auto = AutoModelForSequenceClassification if self.kind == "classifier" else AutoModelForCausalLM
        self.model = load_plainly(auto, self.folder)
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(self.folder)
        self.names = self.names or (self.folder,)
        self.lock = threading.Lock()
        self.known: dict[tuple[int, ...], list[float]] = {}

    def logits(self, ids: Sequence[int]) -> list[float]:
        """The logits of a conversation, computed once."""
        key = tuple(ids)
        with self.lock:
            if key not in self.known:
                self.known[key] = self._next_logits(ids) if self.rows else logits_at_the_end(self.model, ids)
        return [value + self.offset for value in self.known[key]]

    def _next_logits(self, ids: Sequence[int]) -> list[float]:
        import torch

        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([list(ids)])).logits[0, -1]
        return [float(logits[token]) for token in self.rows]

    def probabilities(self, ids: Sequence[int], labels: Sequence[int]) -> list[float]:
        """The probabilities of these tokens among them after a conversation."""
        self.rows = tuple(labels)
        return _activated(self.logits(ids))

    def log_probabilities(self, ids: Sequence[int]) -> list[float]:
        """The log-probability of each token but the first."""
        import torch

        key = tuple(ids)
        with self.lock:
            if key not in self.known:
                with torch.inference_mode():
                    scores = self.model(input_ids=torch.tensor([list(ids)])).logits[0].log_softmax(-1)
                self.known[key] = [float(scores[place, token]) for place, token in enumerate(ids[1:])]
        return self.known[key]

    def ids(self, value: Any, *, add: bool) -> list[int]:
        """Token ids of a text, or as they came."""
        if isinstance(value, str):
            return list(self.tokenizer(value, add_special_tokens=add)["input_ids"])
        return [int(token) for token in value]

    @property
    def vocabulary(self) -> int:
        """How many token ids the model has."""
        return int(self.model.config.vocab_size)


def _activated(logits: Sequence[float]) -> list[float]:
    if len(logits) == 1:
        return [1 / (1 + math.exp(-logits[0]))]
    whole = math.fsum(map(math.exp, logits))
    return [math.exp(value) / whole for value in logits]


def _inputs(given: Any, server: Imitation, *, add: bool) -> list[list[int]]:
    several = isinstance(given, list) and given and isinstance(given[0], list | str)
    return [server.ids(value, add=add) for value in (given if several else [given])]


def _vllm_error(status: int, said: str, parameter: str | None = None) -> Refusal:
    error = {"message": said, "type": "BadRequestError", "param": parameter, "code": status}
    return Refusal(status, {"error": error})


def _vllm_checked(server: Imitation, inputs: Sequence[Sequence[int]], body: Mapping[str, Json]) -> list[list[int]]:
    if not inputs or not all(inputs):
        raise _vllm_error(400, "input is empty")
    keep = body.get("truncate_prompt_tokens")
    most = server.max_length if keep == -1 else keep
    for ids in inputs:
        if max(ids) >= server.vocabulary:
            raise _vllm_error(400, f"Token id {max(ids)} is out of vocabulary")
        if keep is None and len(ids) > server.max_length:
            said = f"This model's maximum context length is {server.max_length} tokens, but {len(ids)} were given."
            raise _vllm_error(400, said, "input_tokens")
    return [list(ids) if most is None else list(ids)[-most:] for ids in inputs]


def _vllm(server: Imitation, path: str, body: dict[str, Json]) -> Json:
    if path in {"/classify", "/v1/completions", "/generative_scoring"} and body.get("model") not in server.names:
        raise Refusal(404, {"error": {"message": f"The model `{body.get('model')}` does not exist.", "code": 404}})
    if path == "/tokenize":
        tokens = server.ids(body["prompt"], add=body.get("add_special_tokens", True))
        return {"count": len(tokens), "max_model_len": server.max_length, "tokens": tokens}
    if path == "/generative_scoring" and server.kind == "token":
        inputs = [(list(body["query"]) + list(item))[: server.max_length - 1] for item in body["items"]]
        scores = [server.probabilities(ids, body["label_token_ids"])[0] for ids in inputs]
        data = [{"index": place, "object": "score", "score": score} for place, score in enumerate(scores)]
        usage = {"prompt_tokens": sum(map(len, inputs)), "completion_tokens": len(inputs)}
        return {"id": "generative-scoring-1", "object": "list", "model": body["model"], "data": data, "usage": usage}
    if path == "/classify" and server.kind in {"classifier", "rows"}:
        for removed in ("normalize", "chat_template"):
            if removed in body:
                raise _vllm_error(400, f"{removed} is not taken", removed)
        if "messages" in body:
            text = str(server.tokenizer.apply_chat_template(body["messages"], tokenize=False))
            inputs = [server.ids(text, add=body.get("add_special_tokens", False))]
        else:
            inputs = _inputs(body["input"], server, add=body.get("add_special_tokens", True))
        inputs = _vllm_checked(server, inputs, body)
        activated = server.activated or body.get("use_activation", True)
        rows = [_activated(logits) if activated else logits for logits in map(server.logits, inputs)]
        data = [
            {"index": place, "label": "LABEL_0", "probs": row, "num_classes": len(row)}
            for place, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": sum(map(len, inputs)), "completion_tokens": 0}
        return {"id": "classify-1", "object": "list", "model": body["model"], "data": data, "usage": usage}
    if path == "/v1/completions" and server.kind == "implicit":
        if not body.get("max_tokens", 16):
            raise _vllm_error(400, "max_tokens must be at least 1, got 0.", "max_tokens")
        inputs = _vllm_checked(server, _inputs(body["prompt"], server, add=True), {"truncate_prompt_tokens": None})
        if any(len(ids) + body.get("max_tokens", 16) > server.max_length for ids in inputs):
            raise _vllm_error(400, f"This model's maximum context length is {server.max_length} tokens.")
        choices = [
            {"index": place, "prompt_logprobs": _prompt_logprobs(server, ids)} for place, ids in enumerate(inputs)
        ]
        return {"id": "cmpl-1", "object": "text_completion", "model": body["model"], "choices": choices}
    raise Refusal(404, {"detail": "Not Found"})


def _prompt_logprobs(server: Imitation, ids: Sequence[int]) -> Json:
    told = zip(ids[1:], server.log_probabilities(ids), strict=True)
    return [None, *({str(token): {"logprob": value, "rank": 1, "decoded_token": ""}} for token, value in told)]


def _sglang(server: Imitation, path: str, body: dict[str, Json]) -> Json:
    if path == "/v1/chat/completions":
        raise Ended
    if path == "/tokenize":
        tokens = server.ids(body["prompt"], add=body.get("add_special_tokens", True))
        return {"tokens": tokens, "count": len(tokens), "max_model_len": server.max_length}
    if path == "/v1/classify":
        rows = body["input"] if isinstance(body["input"], list) else [body["input"]]
        return {"data": [{"index": place, "label": "LABEL_0", "probs": [1.0]} for place, _ in enumerate(rows)]}
    if path == "/v1/score" and server.kind == "token":
        inputs = [list(body["query"]) + list(item) for item in body["items"]]
        rows = [server.probabilities(ids, body["label_token_ids"]) for ids in inputs]
        usage = {"prompt_tokens": sum(map(len, inputs))}
        return {"scores": rows, "model": body["model"], "usage": usage, "object": "scoring"}
    if path != "/classify":
        raise Refusal(404, {"detail": "Not Found"})
    if ("text" in body) == ("input_ids" in body):
        raise Refusal(400, {"error": {"message": "Either text or input_ids should be provided."}})
    given = body.get("input_ids", body.get("text"))
    if not given:
        raise Refusal(500, "Internal Server Error")
    inputs = _inputs(given, server, add=True)
    if any(max(ids) >= server.vocabulary for ids in inputs):
        raise Ended
    if any(len(ids) > server.max_length for ids in inputs):
        said = f"The input is longer than the model's context length ({server.max_length} tokens)."
        raise Refusal(400, {"error": {"message": said}})
    rows = [{"embedding": server.logits(ids), "meta_info": {"id": "1", "prompt_tokens": len(ids)}} for ids in inputs]
    single = isinstance(given, str) or not isinstance(given[0], list | str)
    return rows[0] if single else rows


def _tei_error(status: int, said: str, kind: str) -> Refusal:
    return Refusal(status, {"error": said, "error_type": kind})


def _tei(server: Imitation, path: str, body: dict[str, Json]) -> Json:
    given: Any = body.get("inputs")
    if path == "/tokenize":
        tokens = [server.ids(text, add=body.get("add_special_tokens", True)) for text in given]
        return [[{"id": token, "text": "", "special": False} for token in row] for row in tokens]
    if path != "/predict":
        raise Refusal(404, "Not Found")
    if not given:
        raise _tei_error(400, "`inputs` cannot be empty", "Empty")
    batch = isinstance(given, list) and isinstance(given[0], list)
    inputs = given if batch else [given]
    if len(inputs) > MOST_AT_ONCE:
        raise _tei_error(413, f"batch size {len(inputs)} > maximum allowed batch size {MOST_AT_ONCE}", "Validation")
    rows: list[list[dict[str, Any]]] = []
    for one in inputs:
        texts = [one] if isinstance(one, str) else one
        ids = [token for place, text in enumerate(texts) for token in server.ids(text, add=place == 0)]
        if len(ids) > server.max_length and not body.get("truncate", True):
            raise _tei_error(
                413, f"`inputs` must have less than {server.max_length} tokens. Given: {len(ids)}", "Validation"
            )
        logits = server.logits(ids[: server.max_length])
        scores = logits if body.get("raw_scores") and not server.activated else _activated(logits)
        labeled = [{"score": score, "label": f"LABEL_{place}"} for place, score in enumerate(scores)]
        rows.append(sorted(labeled, key=lambda entry: -entry["score"]))
    return rows if batch else rows[0]


def _pages(server: Imitation) -> dict[str, Json]:
    root = server.root or server.folder
    models = [
        {"id": name, "object": "model", "owned_by": server.engine, "root": root, "max_model_len": server.max_length}
        for name in server.names
    ]
    labels = {str(place): f"LABEL_{place}" for place in range(getattr(server.model.config, "num_labels", 1))}
    head = {"classifier" if len(labels) > 1 else "reranker": {"id2label": labels, "label2id": {}}}
    about = {"model_path": root, "tokenizer_path": root, "is_generation": server.kind in {"implicit", "token"}}
    pages: dict[str, dict[str, Json]] = {
        "vllm": {"/version": {"version": "0.32.0"}, "/v1/models": {"object": "list", "data": models}},
        "sglang": {
            "/model_info": about,
            "/get_model_info": about,
            "/server_info": about | {"version": "0.5.23"},
            "/v1/models": {"object": "list", "data": models},
        },
        "tei": {
            "/info": {
                "model_id": root,
                "model_type": head,
                "max_input_length": server.max_length,
                "max_client_batch_size": MOST_AT_ONCE,
                "auto_truncate": True,
                "version": "1.9.3",
            }
        },
    }
    return pages[server.engine] | server.shown


SCORING = {"/classify", "/v1/completions", "/generative_scoring", "/v1/score", "/predict"}
ANSWERS: dict[str, Callable[[Imitation, str, dict[str, Json]], Json]] = {"vllm": _vllm, "sglang": _sglang, "tei": _tei}


def _answer(server: Imitation, path: str, body: dict[str, Json]) -> Json:
    server.posts.append((path, body))
    if path in SCORING:
        with server.lock:
            number, server.scored = server.scored, server.scored + 1
        if server.ends_after is not None and number >= server.ends_after:
            raise Ended
        if server.busy > number:
            raise _tei_error(429, "Model is overloaded", "Overloaded")
        reply = ANSWERS[server.engine](server, path, body)
        return reply if server.spoil is None else server.spoil(reply, number)
    return ANSWERS[server.engine](server, path, body)


@contextmanager
def imitate(engine: str, folder: str, **settings: Any) -> Iterator[Imitation]:
    """Serve a folder's model as an engine does, on a free loopback port. settings: see `Imitation`."""
    server = Imitation(engine, folder, **settings)

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            pages = _pages(server)
            if server.html:
                self.reply(200, "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>")
            elif self.path in pages:
                self.reply(200, pages[self.path])
            else:
                self.reply(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            body = json.loads(self.body())
            try:
                if server.ended:
                    raise Ended  # noqa: TRY301 - as if it had been found out below
                self.reply(200, _answer(server, self.path, body))
            except Refusal as refusal:
                self.reply(refusal.status, refusal.body)
            except Ended:
                server.ended = True
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def reply(self, status: int, body: Json) -> None:
            page = isinstance(body, str)
            headers = {"Content-Type": "text/html" if page else "application/json"}
            again = {"Retry-After": "0"} if status == 429 else {}
            self.answer_with(status, (body if page else json.dumps(body)).encode(), headers | again)

    with listening(Handler) as url:
        server.url = url
        yield server
