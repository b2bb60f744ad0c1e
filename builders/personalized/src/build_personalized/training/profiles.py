"""Add a profile to each pair: the user's other questions."""

from collections.abc import Iterable
from typing import Any

import polars as pl
from pluralbench_release.audit import normalized
from pluralbench_schemas import POST

from build_personalized.sources.loaded import drops_frame

STEP = "profile"


def add_profiles(
    pairs: pl.DataFrame, posts: pl.DataFrame, *, min_posts: int, max_posts: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the column `profile` to pairs: the user's other posts, newest first.

    A profile never has the question of its pair, neither as the same post nor as the same text, and each text only
    once.

    Args:
        pairs: Pairs, columns of `sources.loaded.PAIRS`.
        posts: Posts of all users, oldest first, columns of `sources.loaded.POSTS`.
        min_posts: Minimum number of posts in a profile.
        max_posts: Maximum number of posts to keep, newest first. None: all.

    Returns:
        The pairs with profiles, and the dropped pairs: those with fewer than `min_posts` posts.
    """
    user_posts: dict[str, list[dict[str, Any]]] = {}
    for user, post in posts.select("user_id", "post").iter_rows():
        user_posts.setdefault(user, []).append(post)
    newest = {user: _distinct(reversed(own_posts)) for user, own_posts in user_posts.items()}
    profiles, enough, dropped = [], [], []
    for row in pairs.iter_rows(named=True):
        own = {normalized(message["content"]) for message in row["prompt"] if message["role"] == "user"}
        others = newest.get(row["user_id"], {})
        profile = [post for text, post in others.items() if text not in own and post["id"] != row["source_id"]]
        profiles.append(profile[:max_posts])
        enough.append(len(profile) >= min_posts)
        if not enough[-1]:
            dropped.append((row["config"], STEP, _drop_reason(min_posts), row["id"]))
    with_profiles = pairs.with_columns(pl.Series("profile", profiles, dtype=pl.List(POST)))
    return with_profiles.filter(enough), drops_frame(dropped)


def _distinct(posts: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Map each normalized text to its first post."""
    first: dict[str, dict[str, Any]] = {}
    for post in posts:
        first.setdefault(normalized(post["text"]), post)
    return first


def _drop_reason(min_posts: int) -> str:
    return "no other question" if min_posts == 1 else f"fewer than {min_posts} other questions"
