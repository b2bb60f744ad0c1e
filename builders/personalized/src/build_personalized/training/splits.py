"""Splits that keep users apart: all pairs of a user are in one of them."""

from collections.abc import Mapping, Sequence

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for

from build_personalized.training.recipe import SplitsTable

SPLITS = ("train", "validation", "test")
NAMES = {"train": "train", "val": "validation", "validation": "validation", "dev": "validation", "test": "test"}


def parts(pairs: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """The config, the split and the rows of each part of `pairs` that has rows, train first."""
    configs = pairs["config"].unique(maintain_order=True)
    found = pairs.partition_by("config", "split", as_dict=True, maintain_order=True)
    return [(config, split, found[config, split]) for config in configs for split in SPLITS if (config, split) in found]


def split_users(pairs: pl.DataFrame, splits: SplitsTable, seed: int) -> pl.DataFrame:
    """`pairs` with a `split`: drawn for the users of each config, or the source's own.

    Raises `SourceError` where a config has too few users, and where the source's own splits share a user.
    """
    if splits.own:
        return own_splits(pairs)
    users = pairs.group_by("config", maintain_order=True).agg(pl.col("user_id").unique(maintain_order=True))
    drawn = {
        user: split
        for config, theirs in users.iter_rows()
        for user, split in divided(theirs, splits.shares, seed, config).items()
    }
    return pairs.with_columns(split=pl.col("user_id").replace_strict(drawn, return_dtype=pl.String))


def divided(users: Sequence[str], shares: Mapping[str, float], seed: int, config: str) -> dict[str, str]:
    """The split of each user. Where a share is above 0, the split has a user; where it is 0, none.

    shares: of train, which takes what rounding leaves, and of the others. Raises `SourceError` for too few users.
    """
    wanted = [split for split, share in shares.items() if share > 0]
    if len(users) < len(wanted):
        raise SourceError(
            f"{config} has {len(users)} user{'' if len(users) == 1 else 's'} to divide among {', '.join(wanted)}; give "
            "a source with more users, or other shares (`--shares 1/0/0` puts all into train)."
        )
    order = sorted(users, key=lambda user: (rng_for(seed, "split", user).random(), user))
    small = [split for split in wanted if split != "train"]
    sizes = {split: max(1, round(len(users) * shares[split])) for split in small}
    for split in sorted(sizes, key=lambda name: -sizes[name]):  # one user is left for train
        sizes[split] = max(1, sizes[split] - max(0, sum(sizes.values()) - len(users) + 1))
    places = [split for split in small for _ in range(sizes[split])]
    return {user: places[place] if place < len(places) else "train" for place, user in enumerate(order)}


def own_splits(pairs: pl.DataFrame) -> pl.DataFrame:
    """`pairs` with the splits that the source has. Raises `SourceError` where it has none, or they share a user."""
    for config, row_id, split in pairs.select("config", "id", "original_split").iter_rows():
        if split not in NAMES:
            said = "no split" if split is None else f"the split {split!r}"
            raise SourceError(
                f"{config}: the row of id {row_id!r} has {said}, and --own-splits takes {', '.join(NAMES)}; leave it "
                "out, and users are divided by the seed."
            )
    split = pairs.with_columns(split=pl.col("original_split").replace_strict(NAMES, return_dtype=pl.String))
    shared = split.group_by("config", "user_id", maintain_order=True).agg(pl.col("split").unique(maintain_order=True))
    both = shared.filter(pl.col("split").list.len() > 1)
    if both.height:
        config, user, names = both.row(0)
        raise SourceError(
            f"{config}: the user {user!r} is in the splits {' and '.join(names)} of the source ({both.height:,} users "
            "are in several); leave out --own-splits, and users are kept apart."
        )
    return split
