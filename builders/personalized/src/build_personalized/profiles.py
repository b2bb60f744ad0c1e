"""Rank each person's posts by relevance to their question (Personalized RewardBench, section 3.1).

Each post keeps its own id: the authors' code gives a ranked post the id of the one that stood in its place before.
"""

import polars as pl
from pluralbench_calls import Backend, Ledger
from pluralbench_retrieval import Query, Retriever, rank


def rank_profiles(questions: pl.DataFrame, ledger: Ledger, identity: Retriever, backend: Backend) -> pl.DataFrame:
    """`questions` with each `profile` in descending order of relevance; equal scores keep the order of the source.

    identity, backend: see `pluralbench_retrieval.rank`.
    """
    queries = [
        Query(row["question"], [post["text"] for post in row["profile"]], f"ranking of the posts of {row['id']}")
        for row in questions.iter_rows(named=True)
    ]
    ranked = [
        [post for _, post in sorted(zip(scores, profile, strict=True), key=lambda pair: -pair[0])]
        for (scores, _), profile in zip(
            rank(queries, ledger, identity, backend), questions["profile"].to_list(), strict=True
        )
    ]
    return questions.with_columns(pl.Series("profile", ranked, dtype=questions.schema["profile"]))
