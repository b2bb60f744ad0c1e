"""Recall and precision of the aspects of plans.

A planned aspect matches a true one if they are similar enough: by the cosine of their sentence embeddings, or by the
words that they share. The matching is one-to-one and of maximum size.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pluralbench_calls import Ledger
from pluralbench_measures.bootstrap import Array
from pluralbench_rewards.rubric import stems

from pluralbench.metrics.plans import AspectMatches

MIN_LETTERS = 3  # of a word that counts: in short titles, shorter words are function words


class Pair(NamedTuple):
    """The true aspects of an item, and the planned ones (none if the plan has no list)."""

    id: str
    true: Sequence[str]
    planned: Sequence[str]


def count_matches(similarity: Array, threshold: float) -> int:
    """Count the pairs of a maximum one-to-one matching of rows and columns with at least this similarity (-1 to 1).

    Of all matchings of maximum size, the one with the highest total similarity is used.
    """
    from scipy.optimize import linear_sum_assignment

    above = similarity >= threshold
    # Each pair weighs more than all similarities together, so that the size of the matching comes first.
    rows, columns = linear_sum_assignment(np.where(above, 2.0 * min(similarity.shape) + similarity, 0.0), maximize=True)
    return int(above[rows, columns].sum())


def match_aspects(pairs: Sequence[Pair], similarities: Sequence[Array], threshold: float) -> list[AspectMatches]:
    """Match the aspects of each item by its similarities of shape (true, planned)."""
    results = []
    for pair, similarity in zip(pairs, similarities, strict=True):
        matches = count_matches(similarity, threshold) if pair.planned else 0
        precision = matches / len(pair.planned) if pair.planned else None
        results.append(AspectMatches(matches, matches / len(pair.true), precision))
    return results


def word_similarity(pairs: Sequence[Pair]) -> list[Array]:
    """Return the Dice coefficient of the word stems of true and planned titles, by item."""

    def dice(true: str, planned: str) -> float:
        first, second = stems(true, MIN_LETTERS), stems(planned, MIN_LETTERS)
        return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0

    tables: list[Any] = [[[dice(true, planned) for planned in pair.planned] for true in pair.true] for pair in pairs]
    return [np.array(table, dtype=np.float64) for table in tables]


def embedding_similarity(pairs: Sequence[Pair], encoder: str, ledger: Ledger) -> list[Array]:
    """Return the cosine of the embeddings of true and planned titles, by item. Embeddings are recorded calls.

    Raises:
        RetrievalError: The sentence-transformers model cannot be loaded, or sentence-transformers is not installed.
    """
    from pluralbench_calls.retrieval import Query, rank, retriever

    model = retriever(f"sentence-transformers:{encoder}")
    queries = [
        Query(title, pair.planned, f"aspects of {pair.id}") for pair in pairs if pair.planned for title in pair.true
    ]
    rows = iter(rank(queries, ledger, model, model))
    return [np.array([next(rows)[0] for _ in pair.true] if pair.planned else [[]] * len(pair.true)) for pair in pairs]
