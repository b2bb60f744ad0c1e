"""Assign users to splits; all pairs of a user are in the same split."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_release.similarity import normalized
from pluralbench_runs import rng_for
from pluralbench_schemas import POST

from build_personalized.sources.loaded import drops_frame
from build_personalized.training.recipe import SplitsTable

STEP = "profile"


def add_profiles(
    pairs: pl.DataFrame, posts: pl.DataFrame, *, min_posts: int, max_posts: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the column `profile` to pairs: the user's other posts, newest first, at most `max_posts`.

    A profile never has the question of its pair, neither as the same post nor as the same text, and each text only
    once. The posts are those of all users, oldest first.

    Returns:
        The pairs with profiles, and the dropped pairs: those with fewer than `min_posts` posts.
    """
    user_posts: dict[str, list[dict[str, Any]]] = {}
    for user, post in posts.select("user_id", "post").iter_rows():
        user_posts.setdefault(user, []).append(post)
    newest = {user: _distinct(reversed(own_posts)) for user, own_posts in user_posts.items()}
    profiles, enough, dropped = [], [], []
    reason = "no other question" if min_posts == 1 else f"fewer than {min_posts} other questions"
    for row in pairs.iter_rows(named=True):
        own = {normalized(message["content"]) for message in row["prompt"] if message["role"] == "user"}
        others = newest.get(row["user_id"], {})
        profile = [post for text, post in others.items() if text not in own and post["id"] != row["source_id"]]
        profiles.append(profile[:max_posts])
        enough.append(len(profile) >= min_posts)
        if not enough[-1]:
            dropped.append((row["config"], STEP, reason, row["id"]))
    with_profiles = pairs.with_columns(pl.Series("profile", profiles, dtype=pl.List(POST)))
    return with_profiles.filter(enough), drops_frame(dropped)


def _distinct(posts: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for post in posts:
        first.setdefault(normalized(post["text"]), post)
    return first


SPLITS = ("train", "validation", "test")
NAMES = {"train": "train", "val": "validation", "validation": "validation", "dev": "validation", "test": "test"}


def parts(pairs: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """Return the config, the split and the rows of each non-empty part of `pairs`, train first."""
    configs = pairs["config"].unique(maintain_order=True)
    rows = pairs.partition_by("config", "split", as_dict=True, maintain_order=True)
    return [(config, split, rows[config, split]) for config in configs for split in SPLITS if (config, split) in rows]


def split_users(pairs: pl.DataFrame, splits: SplitsTable, seed: int) -> pl.DataFrame:
    """Add the column `split`, drawn for the users of each config or taken from the source.

    Raises:
        SourceError: A config has too few users, or the source's own splits share a user.
    """
    if splits.own:
        return own_splits(pairs)
    users = pairs.group_by("config", maintain_order=True).agg(pl.col("user_id").unique(maintain_order=True))
    drawn = {
        user: split
        for config, own_users in users.iter_rows()
        for user, split in draw_splits(own_users, splits.shares, seed, config).items()
    }
    return pairs.with_columns(split=pl.col("user_id").replace_strict(drawn, return_dtype=pl.String))


def draw_splits(users: Sequence[str], shares: Mapping[str, float], seed: int, config: str) -> dict[str, str]:
    """Draw the split of each user of a config.

    A split with a share above 0 gets at least one user; train gets the remainder of rounding.

    Raises:
        SourceError: There are fewer users than splits.
    """
    splits = [split for split, share in shares.items() if share > 0]
    if len(users) < len(splits):
        raise SourceError(
            f"{config} has {len(users)} user{'' if len(users) == 1 else 's'} for the splits {', '.join(splits)}; use a "
            'source with more users, or other shares (all into train: `splits.shares="1/0/0"`).'
        )
    order = sorted(users, key=lambda user: (rng_for(seed, "split", user).random(), user))
    small = [split for split in splits if split != "train"]
    sizes = {split: max(1, round(len(users) * shares[split])) for split in small}
    for split in sorted(sizes, key=lambda name: -sizes[name]):  # one user is left for train
        sizes[split] = max(1, sizes[split] - max(0, sum(sizes.values()) - len(users) + 1))
    places = [split for split in small for _ in range(sizes[split])]
    return {user: places[place] if place < len(places) else "train" for place, user in enumerate(order)}


def own_splits(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add the column `split` from the source's own splits.

    Raises:
        SourceError: A row has no or an unknown split, or the splits share a user.
    """
    for config, row_id, split in pairs.select("config", "id", "original_split").iter_rows():
        if split not in NAMES:
            label = "no split" if split is None else f"the split {split!r}"
            raise SourceError(
                f"{config}: the row with id {row_id!r} has {label}; `splits.own=True` accepts {', '.join(NAMES)}. "
                "Remove it to split users by the seed."
            )
    with_splits = pairs.with_columns(split=pl.col("original_split").replace_strict(NAMES, return_dtype=pl.String))
    by_user = with_splits.group_by("config", "user_id", maintain_order=True).agg(
        pl.col("split").unique(maintain_order=True)
    )
    shared = by_user.filter(pl.col("split").list.len() > 1)
    if shared.height:
        config, user, names = shared.row(0)
        raise SourceError(
            f"{config}: the user {user!r} is in the splits {' and '.join(names)} of the source ({shared.height:,} "
            "users are in several); remove `splits.own=True` to split users by the seed."
        )
    return with_splits
