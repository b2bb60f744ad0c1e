"""How much of what people expect a plan names, and how much of the plan they expect.

A true aspect and a planned one are the same where they are alike enough: by the cosine of their sentence embeddings, or
by the words they share. Each is the same as at most one other: the pairs are as many as can be.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pluralbench_calls import Ledger
from pluralbench_measures.bootstrap import Array, Estimate
from pluralbench_rewards.rubric import stems

from pluralbench.downstream.curves import Key, index_names, mean_numbers
from pluralbench.results.metrics_frame import Place

WORDS, EMBEDDINGS = "words", "embeddings"
SHORTEST = 3  # letters of a word that counts: titles are short, and shorter words say how they hang together
GROUP = "plan"


class Pair(NamedTuple):
    """The aspects of an item: the true ones, and those of its plan, none where it has no list."""

    id: str
    true: Sequence[str]
    planned: Sequence[str]


class AspectMatches(NamedTuple):
    """Of one item: how many true aspects and planned ones are the same, and the two shares.

    recall: of the true aspects. precision: of the planned ones, None where there is none.
    """

    same: int
    recall: float
    precision: float | None


def matched(similarity: Array, threshold: float) -> int:
    """How many pairs of rows and columns, each in one pair at most, have at least this similarity.

    similarity: from -1 to 1, [rows, columns]. Of all ways to pair as many as can be, the most alike counts.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - a second that `--help` saves

    above = similarity >= threshold
    # Each pair weighs more than all similarities together, so that their number comes first.
    rows, columns = linear_sum_assignment(np.where(above, 2.0 * min(similarity.shape) + similarity, 0.0), maximize=True)
    return int(above[rows, columns].sum())


def match_aspects(pairs: Sequence[Pair], similarities: Sequence[Array], threshold: float) -> list[AspectMatches]:
    """What is found of each item. similarities: of its true aspects to its planned ones, [true, planned]."""
    found = []
    for pair, similarity in zip(pairs, similarities, strict=True):
        same = matched(similarity, threshold) if pair.planned else 0
        found.append(AspectMatches(same, same / len(pair.true), same / len(pair.planned) if pair.planned else None))
    return found


def word_similarity(pairs: Sequence[Pair]) -> list[Array]:
    """Twice the words that two titles share over the words that both have (Dice); words are compared by their stems."""

    def alike(one: str, other: str) -> float:
        ours, theirs = stems(one, SHORTEST), stems(other, SHORTEST)
        return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0

    tables: list[Any] = [[[alike(one, other) for other in pair.planned] for one in pair.true] for pair in pairs]
    return [np.array(table, dtype=np.float64) for table in tables]


def embedding_similarity(pairs: Sequence[Pair], encoder: str, ledger: Ledger) -> list[Array]:
    """Cosines of the titles' embeddings by a model of sentence-transformers; each is a recorded call.

    encoder: a folder, or ORG/NAME on the Hub. Raises `RetrievalError`, `MissingExtra`.
    """
    from pluralbench_calls.retrieval import Query, rank, retriever  # noqa: PLC0415 - used by few

    model = retriever(f"sentence-transformers:{encoder}")
    queries = [
        Query(title, pair.planned, f"aspects of {pair.id}") for pair in pairs if pair.planned for title in pair.true
    ]
    rows = iter(rank(queries, ledger, model, model))
    return [np.array([next(rows)[0] for _ in pair.true] if pair.planned else [[]] * len(pair.true)) for pair in pairs]


def aspect_numbers(
    items: pl.DataFrame, found: Mapping[str, Sequence[AspectMatches]], *, by_config: bool
) -> Iterator[tuple[Place, Estimate]]:
    """Mean recall and precision by each way of matching, overall and by config, with intervals over clusters.

    items: their `config` and `cluster`, in the order of `found`. by_config: the overall number is the unweighted mean
    over configs, else over all items. Precision is over the items whose plan has a list.
    """
    config, configs = index_names(items["config"])
    cluster, _ = index_names(items["cluster"])
    columns: dict[Key, Array] = {
        (way, metric, None): np.array([np.nan if (value := getattr(one, name)) is None else value for one in own])
        for way, own in found.items()
        for metric, name in (("aspect_recall", "recall"), ("aspect_precision", "precision"))
    }
    columns = {key: values for key, values in columns.items() if not np.isnan(values).all()}
    return mean_numbers(config, cluster, configs, columns, GROUP, by_config=by_config, within=(0.0, 1.0))
