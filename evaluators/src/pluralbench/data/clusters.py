"""Clusters of dependent items, and shards: parts of a run's items for separate processes.

Intervals, tests and held-out splits treat a cluster as one draw.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_release.similarity import normalized
from pluralbench_runs import FrozenModel, digest, one_line, plural
from pydantic import Field

from pluralbench.data.rows_to_items import BATCH_ITEMS
from pluralbench.errors import EvaluationError

NUM_BLOCKS = 64
"""Number of blocks of a benchmark; fewer if they would be smaller than `MIN_BLOCK`, more if larger than `MAX_BLOCK`."""
MIN_BLOCK, MAX_BLOCK = 4, 128  # items; a larger group is a block by itself
Pair = tuple[str, int | None, str, str]
"""Config of a pair, hash of its prompt, and the normalized texts of its better response and worse response."""


class Clusters(FrozenModel):
    """Clusters of the items, and what occurs in the data more than once.

    Attributes:
        column: Column whose values are the clusters. Default: items with the same normalized prompt or the same id are
            one cluster.
        clusters: Number of clusters.
        repeated_prompts: Items whose prompt occurs earlier in their config.
        repeated_pairs: Pairs of responses that occur earlier for the same prompt, in the same order.
        mirrored_pairs: Pairs that also occur with chosen and rejected swapped.
    """

    column: str | None = None
    clusters: int = Field(0, ge=0)
    repeated_prompts: int = Field(0, ge=0)
    repeated_pairs: int = Field(0, ge=0)
    mirrored_pairs: int = Field(0, ge=0)

    @property
    def name(self) -> str:
        """What a cluster is, in the plural."""
        return "prompts" if self.column is None else f"values of the column `{self.column}`"

    def summary(self, items: int) -> str:
        """Return the number of clusters, such as "2 prompts of 5 items" or "5 prompts, one per item"."""
        rest = ", one per item" if self.clusters == items else f" of {plural(items, 'item')}"
        return f"{self.clusters:,} {self.name}{rest}"

    @property
    def repeats(self) -> str:
        """Repeated content, such as "3 items with a repeated prompt"; "" for none."""
        counts = (
            (self.repeated_prompts, "item", " with a repeated prompt"),
            (self.repeated_pairs, "repeated pair", ""),
            (self.mirrored_pairs, "mirrored pair", " (chosen and rejected swapped)"),
        )
        return ", ".join(f"{plural(n, noun)}{which}" for n, noun, which in counts if n)


def assign_clusters(items: pl.DataFrame, columns: Mapping[str, str | None]) -> tuple[pl.DataFrame, Clusters]:
    """Set each item's cluster to the name of the cluster's first item, and return the items and the counts.

    Args:
        items: Items with the columns `ITEMS`; `cluster` is the value of the cluster column, or the id.
        columns: Cluster column of each config; None clusters items by their prompts.
    """
    by_prompt = pl.col("config").is_in([config for config, column in columns.items() if column is None])
    hashes = pl.concat(map(_prompt_hashes, items.iter_slices(BATCH_ITEMS)), rechunk=True)
    keys = items.select("cluster", prompt=pl.when(by_prompt).then(hashes))
    repeated = items.select("config", "rank", "responses", prompt=hashes).filter(_is_repeated(hashes))
    pairs = Counter(_repeated_pairs(repeated))
    groups = connected_groups(keys)
    clusters = Clusters(
        column=", ".join(sorted({column for column in columns.values() if column is not None})) or None,
        clusters=groups.n_unique(),
        repeated_prompts=repeated.height - repeated.select("config", "prompt").n_unique(),
        repeated_pairs=pairs.total() - len(pairs),
        mirrored_pairs=sum((config, prompt, b, a) in pairs for config, prompt, a, b in pairs) // 2,
    )
    return items.with_columns(cluster=items["cluster"][groups]), clusters


def _prompt_hashes(items: pl.DataFrame) -> pl.Series:
    """Return hashes of the normalized prompts, which take less memory than the texts; null for an empty prompt.

    Two of 1 million different prompts have the same 128 bits with a probability of about 1e-27.
    """
    contents = items["prompt"].list.eval(pl.element().struct.field("content")).list.join("\n\n")
    texts = pl.Series("texts", map(normalized, contents), dtype=pl.String)
    both = pl.col("texts").hash(0).cast(pl.UInt128) * 2**64 + pl.col("texts").hash(1)
    return texts.to_frame().select(pl.when(pl.col("texts") != "").then(both)).to_series()


def connected_groups(keys: pl.DataFrame) -> pl.Series:
    """Return for each row the number of the first row that it shares a key with, directly or through other rows.

    `keys` has a column per kind of key, null if a row has none.
    """
    places = [(_is_repeated(values) & values.is_not_null()).arg_true().to_numpy() for values in keys]
    heads = [
        own[_first_places(values.gather(own).rank("dense").to_numpy())]
        for own, values in zip(places, keys, strict=True)
    ]
    ends = (np.concatenate(places), np.concatenate(heads))
    if not len(ends[0]):
        return pl.int_range(keys.height, eager=True)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(ends[0]), bool), ends), shape=(keys.height, keys.height))
    return pl.Series(_first_places(connected_components(graph, directed=False)[1]))


def _first_places(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each number the place of the first equal one."""
    firsts = np.zeros(numbers.max(initial=0) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]  # the last assignment stays
    places: NDArray[np.int64] = firsts[numbers]
    return places


def _is_repeated(values: pl.Series) -> pl.Series:
    """Return whether each value occurs more than once; most data have none that does, which is cheaper to see."""
    if values.n_unique() == len(values):
        return pl.repeat(value=False, n=len(values), eager=True)
    return values.is_duplicated()


def _repeated_pairs(items: pl.DataFrame) -> Iterator[Pair]:
    repeated = items.filter(pl.struct("config", "prompt").is_duplicated())
    for *place, ranks, responses in repeated.select("config", "prompt", "rank", "responses").iter_rows():
        ranked = [(rank, normalized(text)) for rank, text in zip(ranks, responses, strict=True) if rank is not None]
        for (better_rank, better), (worse_rank, worse) in product(ranked, repeat=2):
            if better_rank < worse_rank and better != worse:
                yield *place, better, worse


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

    def select(self, blocks: pl.Series) -> pl.Series:
        """Return whether each item is in this shard, by the number of its block (see `assign_blocks`)."""
        return blocks % self.total == self.number - 1


def parse_shard(text: str) -> Shard:
    """Parse a shard such as "2/8"."""
    match = NUMBERS.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise EvaluationError(
            f"The shard `{one_line(text, 40)}` is not of the form I/N with I from 1 to N, such as 2/8."
        )
    return Shard(int(match[1]), int(match[2]))


def assign_blocks(items: pl.DataFrame) -> pl.Series:
    """Return the number of each item's block; the items of a block are in one shard, and share batches of a model.

    A block has whole groups, in the order of their texts' digests: neither the ids nor the order of the data change
    which items share batches. Items of one cluster (a prompt or a user) are a group. So are items with the same texts:
    a judge's call about them is then recorded once, as in a run without shards.
    """
    size = min(max(items.height // NUM_BLOCKS, MIN_BLOCK), MAX_BLOCK)
    places = connected_groups(items.select("cluster", "digest"))
    content = pl.col("digest").str.to_integer(base=16, dtype=pl.UInt64)
    groups = items.select(content, group=places).group_by("group").agg(pl.len(), pl.col("digest").min()).sort("digest")
    blocks = groups.select(((pl.col("len").cum_sum() - pl.col("len")) // size).rle_id().cast(pl.Int64)).to_series()
    return pl.zeros(items.height, pl.Int64, eager=True).scatter(groups["group"], blocks).gather(places)
