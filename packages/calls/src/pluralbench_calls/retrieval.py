"""Retrieval: score documents by relevance to a query.

Scores are recorded calls of kind "rank", so a rebuild needs no model.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from pluralbench_runs import UserError, install_command, one_line, public_location

from pluralbench_calls.ask import ask
from pluralbench_calls.ledger import BM25, Ledger
from pluralbench_calls.limits import Limits
from pluralbench_calls.model_checks import check_model, unreachable_errors
from pluralbench_calls.records import Answer, Backend, Request

CONTRIEVER = "facebook/contriever-msmarco"
CONTRIEVER_BATCH = 16
HUB_TIMEOUT = 10  # seconds
HINT = "set `retriever=...` to `{}:FOLDER` with a local copy of the model, or to `bm25`, which needs no model"

Scorer = Callable[[str, Sequence[str]], list[float]]
"""Maps a query and documents to one score per document, higher for more relevant."""


class RetrievalError(UserError):
    """A retriever is unknown or cannot be loaded."""


@dataclass(frozen=True)
class Query:
    """Documents to rank for a query. The label says what the call is for, in words."""

    text: str
    documents: Sequence[str]
    label: str


class Retriever(Backend):
    """A backend that answers "rank" requests with the scores of a scorer, which is loaded when first needed."""

    concurrency: int | None = 1

    def __init__(self, provider: str, model: str, load: Callable[[str], Scorer]) -> None:
        self.provider, self.model = provider, public_location(model)
        self._path, self._load = model, load

    @cached_property
    def _scorer(self) -> Scorer:
        try:
            return self._load(self._path)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - several libraries read the files and raise their own errors
            reason = one_line(error)
            hint = HINT.format(self.provider)
            raise RetrievalError(f"The retrieval model {self._path} cannot be loaded ({reason}); {hint}.") from None

    async def send(self, request: Request) -> Answer:
        """Score the `documents` of a request for its `query`, as a JSON list."""
        body = cast("dict[str, Any]", request.body)
        scores = self._scorer(body["query"], body["documents"])
        if not all(map(math.isfinite, scores)):
            raise RetrievalError(f"{self.model} returns scores that are not finite numbers for {request.label}.")
        return Answer.to(request, "answer", json.dumps(scores))


def retriever(name: str) -> Retriever:
    """Create a retriever by name.

    Args:
        name: `bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`, where MODEL is a name on the Hub or a
            folder.

    Raises:
        RetrievalError: The name is unknown.
    """
    kind, _, model = name.partition(":")
    match kind, model:
        case "bm25", "":
            return Retriever(BM25, "lucene k1=1.5 b=0.75 stopwords=en", lambda _: bm25_scores)
        case "contriever", _:
            return Retriever("contriever", model or CONTRIEVER, _contriever)
        case "sentence-transformers", str() if model:
            return Retriever("sentence-transformers", model, _sentence_transformers)
    raise RetrievalError(
        f"Unknown retriever {name!r}; choose `bm25`, `contriever`, `contriever:MODEL` or `sentence-transformers:MODEL`."
    )


def rank(
    queries: Sequence[Query], ledger: Ledger, identity: Retriever, backend: Backend
) -> list[tuple[list[float], str]]:
    """Score the documents of each query, with recorded calls.

    Args:
        queries: The queries with their documents.
        ledger: Where scores are looked up and recorded.
        identity: The retriever that the scores are recorded for.
        backend: The backend that computes missing scores: `identity`, or `Replay` to use the ledger alone.

    Returns:
        For each query, the scores of its documents (higher for more relevant) and the key of the call.
    """
    requests = [
        Request(
            kind="rank",
            provider=identity.provider,
            model=identity.model,
            body={"query": query.text, "documents": list(query.documents)},
            label=query.label,
        )
        for query in queries
    ]
    limits = Limits(concurrency=backend.concurrency or Limits.concurrency)
    answers = ask(requests, ledger, backend, limits=limits, label="rankings")
    return [(json.loads(answer.text), answer.key) for answer in answers]


def bm25_scores(query: str, documents: Sequence[str]) -> list[float]:
    """Score documents by BM25 (Lucene's variant); a document that shares no word with the query gets 0.

    Words are separated by spaces or punctuation, so languages without spaces need another retriever.
    """
    import bm25s

    tokens = bm25s.tokenize(list(documents), stopwords="en", return_ids=False, show_progress=False)
    words = bm25s.tokenize([query], stopwords="en", return_ids=False, show_progress=False)[0]
    vocabulary = {token for document in tokens for token in document}
    words = [word for word in words if word in vocabulary]
    if not words:
        return [0.0] * len(documents)
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(tokens, show_progress=False)
    return [float(score) for score in index.get_scores(words)]


def _contriever(model: str) -> Scorer:
    """Load Contriever: mean of the last hidden states under the attention mask, dot product, no normalization."""
    local = _is_local(model, "contriever", "torch", "transformers")
    check_model(model, RetrievalError, local=local)
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local, trust_remote_code=False)
    encoder = AutoModel.from_pretrained(model, local_files_only=local, trust_remote_code=False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder.to(device).eval()

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> Any:
        parts = []
        for start in range(0, len(texts), CONTRIEVER_BATCH):
            batch = list(texts[start : start + CONTRIEVER_BATCH])
            inputs = tokenizer(batch, padding=True, truncation=True, return_tensors="pt").to(device)
            mask = inputs["attention_mask"][..., None]
            hidden = encoder(**inputs).last_hidden_state.masked_fill(mask == 0, 0.0)
            parts.append(hidden.sum(dim=1) / mask.sum(dim=1))
        return torch.cat(parts)

    def scores(query: str, documents: Sequence[str]) -> list[float]:
        result: list[float] = (embed(documents) @ embed([query])[0]).tolist()
        return result

    return scores


def _sentence_transformers(model: str) -> Scorer:
    """Load a sentence-transformers model, with the prompts and the similarity of its configuration."""
    local = _is_local(model, "sentence-transformers", "sentence_transformers")
    check_model(model, RetrievalError, local=local)
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(model, local_files_only=local)

    def scores(query: str, documents: Sequence[str]) -> list[float]:
        similarity = encoder.similarity(encoder.encode_query([query]), encoder.encode_document(list(documents)))
        result: list[float] = similarity[0].tolist()
        return result

    return scores


def _is_local(model: str, extra: str, *libraries: str) -> bool:
    """Whether to load a model without the Hub: from a folder, or from the cache if the Hub cannot be reached.

    Called before the libraries are imported, which take a minute to notice that there is no network.
    """
    if not all(map(find_spec, libraries)):
        command = install_command("pluralbench-calls", extra)
        raise RetrievalError(f"The retriever `{extra}` needs an extra: {command}.")
    if Path(model).is_dir():
        return True
    from huggingface_hub import HfApi, errors, try_to_load_from_cache

    hint = HINT.format(extra)
    try:
        HfApi().model_info(model, timeout=HUB_TIMEOUT)
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise RetrievalError(f"There is no folder {model}, and no such model on the Hub; {hint}.") from None
    except unreachable_errors():
        if isinstance(try_to_load_from_cache(model, "config.json"), str):
            return True
        raise RetrievalError(
            f"The retrieval model {model} is not on this machine, and the Hub cannot be reached; {hint}."
        ) from None
    return False
