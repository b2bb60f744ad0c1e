"""Rank each person's posts by relevance to their question (Personalized RewardBench, section 3.1).

Each post keeps its own id. In the authors' code a ranked post gets the id of the post that was at its position before.
"""

import polars as pl
from pluralbench_calls import Backend, Ledger
from pluralbench_calls.retrieval import Query, Retriever, rank


def rank_profiles(questions: pl.DataFrame, ledger: Ledger, identity: Retriever, backend: Backend) -> pl.DataFrame:
    """Sort each `profile` by descending relevance to the question; posts with equal scores keep their order.

    Args:
        questions: Rows with `id`, `question` and `profile`.
        ledger: Ledger of the scores.
        identity: Retriever by which scores are recorded (see `pluralbench_calls.retrieval.rank`).
        backend: Backend that computes the scores: the retriever, or a replay.
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
