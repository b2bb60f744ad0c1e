"""A share of the items for one of several processes, so that schedulers without Ray can split a run."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from pluralbench_runs import digest, one_line

from pluralbench.data.clusters import connected_groups
from pluralbench.errors import EvaluationError

NUMBERS = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")


class Shard(NamedTuple):
    """One of several shares of a run's items, counted from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @property
    def suffix(self) -> str:
        """What ends the name of its run directory, such as "-shard2of8"."""
        return f"-shard{self.number}of{self.total}"

    def contains(self, group: str) -> bool:
        """Whether a group of items is in this share: by a hash of its name, the same in every process and version."""
        return int(digest(["shard", group])[:16], 16) % self.total == self.number - 1

    def select(self, items: pl.DataFrame) -> pl.DataFrame:
        """The items of this share, in their order; may be none. items: with `cluster` and `digest`."""
        return items.filter(pl.Series([self.contains(group) for group in shard_groups(items)], dtype=pl.Boolean))


def parse_shard(text: str) -> Shard:
    """The share that a text such as "2/8" names. Raises `EvaluationError`."""
    found = NUMBERS.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise EvaluationError(
            f"The shard `{one_line(text, 40)}` is not of the form I/N, with I from 1 to N, such as 2/8."
        )
    return Shard(int(found[1]), int(found[2]))


def shard_groups(items: pl.DataFrame) -> Sequence[str]:
    """The name of the group of each item, in their order.

    Items of one cluster (a prompt, a user) are one group, and so are items with the same texts, of which a judge is
    asked the same: its calls are then recorded once, as in a whole run.
    """
    return items["cluster"][connected_groups(items.select("cluster", "digest"))].to_list()
