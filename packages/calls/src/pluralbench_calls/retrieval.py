"""Score documents by relevance to a query. Scores are recorded calls of kind "rank", so a rebuild needs no model."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from pluralbench_runs import UserError, check_model_folder, install_command, one_line, public_location

from pluralbench_calls.ask import Limits, ask
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.records import Answer, Backend, Request

CONTRIEVER = "facebook/contriever-msmarco"
CONTRIEVER_BATCH = 16
HUB_SECONDS = 10
MEND = (
    "set `retriever` to `{}:FOLDER` with a folder that holds a copy of the model, or to `bm25`, which needs neither "
    "model nor network"
)

Scorer = Callable[[str, Sequence[str]], list[float]]
"""From a query and documents to a score for each document, higher for more relevant."""


class RetrievalError(UserError):
    """An unknown retriever, or one that cannot be loaded."""


class MissingExtra(RetrievalError):
    """A retriever that needs an extra of this package."""


@dataclass(frozen=True)
class Query:
    """What is to be ranked: a query, its documents, and what the call is for, in words."""

    text: str
    documents: Sequence[str]
    label: str


class Retriever(Backend):
    """A backend that answers "rank" requests with the scores of a scorer, loaded when first needed."""

    concurrency: int | None = 1

    def __init__(self, provider: str, model: str, load: Callable[[str], Scorer]) -> None:
        self.provider, self.model = provider, public_location(model)
        self._place, self._load = model, load

    @cached_property
    def _scorer(self) -> Scorer:
        try:
            return self._load(self._place)
        except (OSError, ValueError) as error:
            reason = one_line(error)
            mend = MEND.format(self.provider)
            raise RetrievalError(f"The retrieval model {self._place} cannot be loaded ({reason}); {mend}.") from None

    async def send(self, request: Request) -> Answer:
        """The scores of `documents` for `query`, as a JSON list."""
        body = cast("dict[str, Any]", request.body)
        scores = self._scorer(body["query"], body["documents"])
        if not all(map(math.isfinite, scores)):
            raise RetrievalError(f"{self.model} gives scores that are no numbers for {request.label}.")
        return Answer.to(request, "answer", json.dumps(scores))


def retriever(name: str) -> Retriever:
    """The retriever `bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`. Raises `RetrievalError`."""
    kind, _, model = name.partition(":")
    match kind, model:
        case "bm25", "":
            return Retriever("bm25s", "lucene k1=1.5 b=0.75 stopwords=en", lambda _: bm25_scores)
        case "contriever", _:
            return Retriever("contriever", model or CONTRIEVER, _contriever)
        case "sentence-transformers", str() if model:
            return Retriever("sentence-transformers", model, _sentence_transformers)
    raise RetrievalError(
        f"Unknown retriever {name!r}: give `bm25`, `contriever`, `contriever:MODEL` or `sentence-transformers:MODEL`."
    )


def rank(
    queries: Sequence[Query], ledger: Ledger, identity: Retriever, backend: Backend
) -> list[tuple[list[float], str]]:
    """For each query the scores of its documents, higher for more relevant, and the key of the call.

    identity: whose scores they are. backend: who gives them, which in a replay is the ledger alone.
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
    """BM25 (Lucene's variant) within one person's posts; a post that shares no word with the query gets 0.

    A word is what stands between blanks or punctuation, so for languages without blanks take another retriever.
    """
    import bm25s  # noqa: PLC0415 - half a second that other commands save

    tokens = bm25s.tokenize(list(documents), stopwords="en", return_ids=False, show_progress=False)
    words = bm25s.tokenize([query], stopwords="en", return_ids=False, show_progress=False)[0]
    known = {token for document in tokens for token in document}
    words = [word for word in words if word in known]
    if not words:
        return [0.0] * len(documents)
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(tokens, show_progress=False)
    return [float(score) for score in index.get_scores(words)]


def _contriever(model: str) -> Scorer:
    """Contriever: mean of the last hidden states under the attention mask, raw dot product, no normalisation."""
    local = _only_here(model, "contriever", "torch", "transformers")
    import torch  # noqa: PLC0415 - an extra
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415 - an extra

    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local)
    encoder = AutoModel.from_pretrained(model, local_files_only=local)
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
    """Any sentence-transformers model, with the prompts and the similarity of its own configuration."""
    local = _only_here(model, "sentence-transformers", "sentence_transformers")
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an extra

    encoder = SentenceTransformer(model, local_files_only=local)

    def scores(query: str, documents: Sequence[str]) -> list[float]:
        similarity = encoder.similarity(encoder.encode_query([query]), encoder.encode_document(list(documents)))
        result: list[float] = similarity[0].tolist()
        return result

    return scores


def _only_here(model: str, extra: str, *libraries: str) -> bool:
    """Whether a model is to be loaded without asking the Hub: a folder, or a copy in the cache of what is out of reach.

    Asked once, before the libraries are imported: they need a minute to find that there is no network. Raises
    `MissingExtra` without the libraries, `RetrievalError` for a model that is neither here nor on the Hub.
    """
    if not all(map(find_spec, libraries)):
        how = install_command("pluralbench-calls", extra)
        raise MissingExtra(f"The retriever `{extra}` needs an extra: {how}.")
    if Path(model).is_dir():
        check_model_folder(Path(model), RetrievalError)
        return True
    from huggingface_hub import HfApi, errors, try_to_load_from_cache  # noqa: PLC0415 - of the extras

    # Without a network the Hub's client lets its HTTP library's own error through, which `errors` imports.
    unreachable: Any = (
        errors.HfHubHTTPError,
        errors.OfflineModeIsEnabled,
        OSError,
        getattr(errors, "HTTPError", OSError),
    )
    mend = MEND.format(extra)
    try:
        HfApi().model_info(model, timeout=HUB_SECONDS)
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise RetrievalError(f"There is no folder {model}, and no such model on the Hub; {mend}.") from None
    except unreachable:
        if isinstance(try_to_load_from_cache(model, "config.json"), str):
            return True
        raise RetrievalError(
            f"The retrieval model {model} is not on this machine, and the Hub cannot be reached; {mend}."
        ) from None
    return False
