"""A profile holds what the user asked besides, the newest first, and never the question of the row."""

import polars as pl
import pytest
from build_personalized.sources.loaded import PAIRS, POSTS
from build_personalized.training.splits import add_profiles
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.similarity import normalized

TEXTS = ["one", "two", "ONE", " two ", "three", "four"]
ASKED = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(TEXTS)), min_size=1, max_size=12)


def tables(asked: list[tuple[str, str]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs of users with their questions, each a conversation of its own."""
    named = [(user, f"post {number}", text) for number, (user, text) in enumerate(asked)]
    pairs = [
        {"config": "c", "id": post, "user_id": user, "source_id": post, "prompt": [{"role": "user", "content": text}]}
        for user, post, text in named
    ]
    posts = [
        {"config": "c", "user_id": user, "post": {"id": post, "category": None, "text": text}}
        for user, post, text in named
    ]
    return pl.DataFrame(pairs, schema=PAIRS), pl.DataFrame(posts, schema=POSTS)


@given(ASKED)
def test_a_profile_is_the_other_questions_of_the_user_newest_first(asked: list[tuple[str, str]]) -> None:
    pairs, posts = tables(asked)
    result, drops = add_profiles(pairs, posts, min_posts=0, max_posts=None)
    assert (result.height, drops.height) == (len(asked), 0)
    places = {f"post {number}": number for number in range(len(asked))}
    for row, (user, text) in zip(result.iter_rows(named=True), asked, strict=True):
        others = {normalized(message) for who, message in asked if who == user} - {normalized(text)}
        assert [normalized(post["text"]) for post in row["profile"]].count(normalized(text)) == 0
        assert {normalized(post["text"]) for post in row["profile"]} == others
        assert len(row["profile"]) == len(others)
        order = [places[post["id"]] for post in row["profile"]]
        assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("min_posts", "kept", "reason"),
    [(0, ["a", "a", "b"], None), (1, ["a", "a"], "no other question"), (2, [], "fewer than 2 other questions")],
)
def test_users_with_few_questions_are_left_out_and_counted(min_posts: int, kept: list[str], reason: str | None) -> None:
    pairs, posts = tables([("a", "one"), ("a", "two"), ("b", "three")])
    result, drops = add_profiles(pairs, posts, min_posts=min_posts, max_posts=None)
    assert result["user_id"].to_list() == kept
    assert drops["reason"].to_list() == [reason] * (3 - len(kept))
