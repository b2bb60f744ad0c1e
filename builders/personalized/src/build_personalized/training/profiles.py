"""A user's profile for a pair: the other questions that they asked."""

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
    """`pairs` with a `profile`, the newest first; those with fewer than min_posts are drops.

    posts: as in `Preferences`. A profile never holds the question of its pair, neither its post nor one with the same
    text, and a text once. max_posts: keep so many of the newest.
    """
    asked: dict[str, list[dict[str, Any]]] = {}
    for user, post in posts.select("user_id", "post").iter_rows():
        asked.setdefault(user, []).append(post)
    newest = {user: _once(reversed(theirs)) for user, theirs in asked.items()}
    profiles, enough, dropped = [], [], []
    for row in pairs.iter_rows(named=True):
        own = {normalized(message["content"]) for message in row["prompt"] if message["role"] == "user"}
        others = newest.get(row["user_id"], {})
        profile = [post for text, post in others.items() if text not in own and post["id"] != row["source_id"]]
        profiles.append(profile[:max_posts])
        enough.append(len(profile) >= min_posts)
        if not enough[-1]:
            dropped.append((row["config"], STEP, _too_few(min_posts), row["id"]))
    with_profiles = pairs.with_columns(pl.Series("profile", profiles, dtype=pl.List(POST)))
    return with_profiles.filter(enough), drops_frame(dropped)


def _once(posts: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each text's first post."""
    found: dict[str, dict[str, Any]] = {}
    for post in posts:
        found.setdefault(normalized(post["text"]), post)
    return found


def _too_few(min_posts: int) -> str:
    return "no other question" if min_posts == 1 else f"fewer than {min_posts} other questions"
