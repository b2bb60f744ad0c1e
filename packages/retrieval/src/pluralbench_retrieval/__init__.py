"""Score documents by relevance to a query, recorded."""

from pluralbench_retrieval.errors import MissingExtra, RetrievalError
from pluralbench_retrieval.retrievers import Query, Retriever, Scorer, bm25_scores, rank, ranking_backend, retriever

__all__ = [
    "MissingExtra",
    "Query",
    "RetrievalError",
    "Retriever",
    "Scorer",
    "bm25_scores",
    "rank",
    "ranking_backend",
    "retriever",
]
