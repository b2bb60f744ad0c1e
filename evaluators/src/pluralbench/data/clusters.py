"""Which items belong together: intervals, tests and held-out parts take clusters of items as drawn."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from pluralbench_release.audit import normalized
from pluralbench_runs import FrozenModel
from pydantic import Field

PLACE = "#place"
Pair = tuple[str, str, str, str]
"""The config of a pair, and the normalised texts of its prompt and of the better and the worse response."""


class Clusters(FrozenModel):
    """What the clusters of some items are, and what stands in the data more than once.

    column: whose values they are; None where items with the same prompt (see `normalized`) or the
    same id are one. clusters: how many there are. repeated_prompts: items whose prompt stood in their config before.
    repeated_pairs: pairs of responses, the better one first, that stood there before for the same prompt.
    mirrored_pairs: pairs of which the other way round stands there too.
    """

    column: str | None = None
    clusters: int = Field(0, ge=0)
    repeated_prompts: int = Field(0, ge=0)
    repeated_pairs: int = Field(0, ge=0)
    mirrored_pairs: int = Field(0, ge=0)

    @property
    def name(self) -> str:
        """What they are, in the plural."""
        return "prompts" if self.column is None else f"values of the column `{self.column}`"

    def summary(self, items: int) -> str:
        """How many of so many items, as "2 prompts of 5 items", and plainly where each item is one by itself."""
        one_each = self.clusters == items
        return f"{self.clusters:,} {self.name}{', one an item' if one_each else f' of {items:,} items'}"

    @property
    def repeats(self) -> str:
        """What stands in the data more than once, as "3 items with a prompt that stood there before"; may be empty."""
        counts = {
            "item|items": (self.repeated_prompts, "with a prompt that stood there before"),
            "pair|pairs": (self.repeated_pairs, "that stood there before"),
            "mirrored pair|mirrored pairs": (self.mirrored_pairs, "(chosen and rejected the other way round)"),
        }
        return ", ".join(f"{n:,} {words.split('|')[n != 1]} {which}" for words, (n, which) in counts.items() if n)


def assign_clusters(items: pl.DataFrame, columns: Mapping[str, str | None]) -> tuple[pl.DataFrame, Clusters]:
    """The items with those of one cluster under the name of its first, and what was found.

    items: with the columns of `pluralbench.data.items.ITEMS`, and in `cluster` the value of a config's column, or where
    there is none the id. columns: by config the column that names its clusters, None for the rule of prompts.
    """
    said = pl.element().struct.field("content")
    joined = items["prompt"].list.eval(said).list.join("\n\n")
    texts = pl.Series("text", map(normalized, joined), pl.String)
    ruled = items["config"].is_in([config for config, column in columns.items() if column is None])
    shared = pl.DataFrame([items["cluster"], texts]).select(
        "cluster", text=pl.when(ruled & (pl.col("text") != "")).then("text")
    )
    prompts = pl.DataFrame([items["config"], texts])
    ordered = Counter(_pairs(items, prompts))
    names = items["cluster"][connected_groups(shared)]
    found = Clusters(
        column=", ".join(sorted({column for column in columns.values() if column is not None})) or None,
        clusters=names.n_unique(),
        repeated_prompts=prompts.height - prompts.n_unique(),
        repeated_pairs=ordered.total() - len(ordered),
        mirrored_pairs=sum((config, prompt, b, a) in ordered for config, prompt, a, b in ordered) // 2,
    )
    return items.with_columns(cluster=names), found


def connected_groups(keys: pl.DataFrame) -> pl.Series:
    """For each row the number of the first that it shares a key with, directly or by way of others.

    keys: a column a kind of key, null where a row has none.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415 - half a second that other commands save
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - the same

    places = keys.with_row_index(PLACE)
    edges = pl.concat(
        places.drop_nulls(name).select(PLACE, head=pl.col(PLACE).first().over(name)) for name in keys.columns
    )
    ends = (edges[PLACE].to_numpy(), edges["head"].to_numpy())
    graph = coo_array((np.ones(edges.height, bool), ends), shape=(keys.height, keys.height))
    groups = places.with_columns(group=pl.Series(connected_components(graph, directed=False)[1]))
    return groups.select(pl.col(PLACE).first().over("group")).to_series()


def _pairs(items: pl.DataFrame, prompts: pl.DataFrame) -> Iterator[Pair]:
    """The pairs of the items whose prompt stands in their config more than once."""
    often = prompts.is_duplicated()
    for place, row in zip(
        prompts.filter(often).iter_rows(),
        items.filter(often).select("responses", "rank").iter_rows(named=True),
        strict=True,
    ):
        yield from ((*place, better, worse) for better, worse in _ordered(row))


def _ordered(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    both = zip(row["rank"], row["responses"], strict=True)
    ranked = [(rank, normalized(response)) for rank, response in both if rank is not None]
    for (rank, better), (other, worse) in product(ranked, repeat=2):
        if rank < other and better != worse:
            yield better, worse
