"""Shards: parts of a run's items for separate processes, such as the jobs of a scheduler."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from pluralbench_runs import digest, one_line

from pluralbench.data.clusters import connected_groups
from pluralbench.errors import EvaluationError

NUMBERS = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")


class Shard(NamedTuple):
    """One of `total` parts of a run's items; `number` counts from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @property
    def suffix(self) -> str:
        """End of the name of the shard's run directory, such as "-shard2of8"."""
        return f"-shard{self.number}of{self.total}"

    def contains(self, group: str) -> bool:
        """Return whether a group of items is in this shard, by a hash of its name that never changes."""
        return int(digest(["shard", group])[:16], 16) % self.total == self.number - 1

    def select(self, items: pl.DataFrame) -> pl.DataFrame:
        """Return the items of this shard, in their order; may be empty. They need `cluster` and `digest`."""
        return items.filter(pl.Series([self.contains(group) for group in shard_groups(items)], dtype=pl.Boolean))


def parse_shard(text: str) -> Shard:
    """Parse a shard such as "2/8".

    Raises:
        EvaluationError: If the text has another form.
    """
    match = NUMBERS.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise EvaluationError(
            f"The shard `{one_line(text, 40)}` is not of the form I/N with I from 1 to N, such as 2/8."
        )
    return Shard(int(match[1]), int(match[2]))


def shard_groups(items: pl.DataFrame) -> Sequence[str]:
    """Return the name of each item's group; the items of a group are in one shard.

    Items of one cluster (a prompt or a user) are a group. So are items with the same texts: a judge's call about them
    is then recorded once, as in a run without shards.
    """
    return items["cluster"][connected_groups(items.select("cluster", "digest"))].to_list()
