"""Rank each person's posts by relevance to their question (Personalized RewardBench, section 3.1).

Each post keeps its own id: the authors' code gives a ranked post the id of the one that stood in its place before.
"""

import polars as pl
from pluralbench_calls import Backend, Ledger
from pluralbench_calls.retrieval import Query, Retriever, rank


def rank_profiles(questions: pl.DataFrame, ledger: Ledger, identity: Retriever, backend: Backend) -> pl.DataFrame:
    """`questions` with each `profile` in descending order of relevance; equal scores keep the order of the source.

    identity, backend: see `pluralbench_calls.retrieval.rank`.
    """
    profiles = questions["profile"].to_list()
    queries = [
        Query(question, [post["text"] for post in profile], f"ranking of the posts of {name}")
        for name, question, profile in zip(questions["id"], questions["question"], profiles, strict=True)
        if profile
    ]
    scored = iter(rank(queries, ledger, identity, backend))
    ranked = [
        [post for _, post in sorted(zip(next(scored)[0], profile, strict=True), key=lambda pair: -pair[0])]
        if profile
        else []
        for profile in profiles
    ]
    return questions.with_columns(pl.Series("profile", ranked, dtype=questions.schema["profile"]))
