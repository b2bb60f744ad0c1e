"""Profiles are ranked by relevance, and each post keeps its own id."""

from pathlib import Path

import polars as pl
import pytest
from build_personalized.profiles import rank_profiles
from build_personalized.sources.loaded import QUESTIONS
from pluralbench_calls import Ledger, MissingAnswers, Replay
from pluralbench_calls.retrieval import retriever

POSTS = ["water for coffee", "a stout", "milk", "stout beer", "milk"]


def asked(*posts: str) -> pl.DataFrame:
    profile = [{"id": f"p{number}", "category": f"c{number}", "text": text} for number, text in enumerate(posts)]
    row = {"config": "c", "id": "q", "question": "Stout?", "category": "", "narrative": "", "rubric_aspects": []}
    return pl.DataFrame([row | {"profile": profile}], schema=QUESTIONS)


def test_posts_keep_their_ids_and_equal_ones_their_order(tmp_path: Path) -> None:
    bm25 = retriever("bm25")
    with Ledger(tmp_path / "l") as ledger:
        ranked = rank_profiles(asked(*POSTS), ledger, bm25, bm25)
        again = rank_profiles(asked(*POSTS), ledger, bm25, Replay())
    profile = ranked["profile"][0].to_list()
    assert [post["id"] for post in profile] == ["p1", "p3", "p0", "p2", "p4"]
    assert all(post["text"] == POSTS[int(post["id"][1:])] for post in profile)
    assert all(post["category"] == "c" + post["id"][1:] for post in profile)
    assert again.equals(ranked)


def test_a_ranking_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger, pytest.raises(MissingAnswers, match="ranking of the posts of q"):
        rank_profiles(asked(*POSTS), ledger, retriever("bm25"), Replay())
