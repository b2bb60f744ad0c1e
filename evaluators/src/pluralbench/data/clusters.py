"""Which items belong together: intervals, tests and held-out parts take clusters of items as drawn."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl
from pluralbench_audit import normalised
from pluralbench_runs import Table
from pydantic import Field

Pair = tuple[str, str, str, str]
"""The config of a pair, and the normalised texts of its prompt and of the better and the worse response."""


class Clusters(Table):
    """What the clusters of some items are, and what stands in the data more than once.

    column: whose values they are; None where items with the same prompt (see `pluralbench_audit.normalised`) or the
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

    @property
    def repeats(self) -> str:
        """What stands in the data more than once, as "3 items with a prompt that stood there before"; may be empty."""
        counts = {
            "item|items": (self.repeated_prompts, "with a prompt that stood there before"),
            "pair|pairs": (self.repeated_pairs, "that stood there before"),
            "mirrored pair|mirrored pairs": (self.mirrored_pairs, "(chosen and rejected the other way round)"),
        }
        return ", ".join(f"{n:,} {words.split('|')[n != 1]} {which}" for words, (n, which) in counts.items() if n)


def clustered(items: pl.DataFrame, columns: Mapping[str, str | None]) -> tuple[pl.DataFrame, Clusters]:
    """The items with those of one cluster under the name of its first, and what was found.

    items: with the columns of `pluralbench.data.items.ITEMS`, and in `cluster` the value of a config's column, or where
    there is none the id. columns: by config the column that names its clusters, None for the rule of prompts.
    """
    said = pl.element().struct.field("content")
    texts = [normalised(text) for text in items["prompt"].list.eval(said).list.join("\n\n").to_list()]
    configs, own = items["config"].to_list(), items["cluster"].to_list()
    keys = (
        [("id", name), ("prompt", text)] if text and columns[config] is None else [("id", name)]
        for config, name, text in zip(configs, own, texts, strict=True)
    )
    names = [own[first] for first in firsts(keys)]
    ordered = Counter(_pairs(items, texts))
    found = Clusters(
        column=", ".join(sorted({column for column in columns.values() if column is not None})) or None,
        clusters=len(set(names)),
        repeated_prompts=len(texts) - len(set(zip(configs, texts, strict=True))),
        repeated_pairs=ordered.total() - len(ordered),
        mirrored_pairs=sum((config, prompt, b, a) in ordered for config, prompt, a, b in ordered) // 2,
    )
    return items.with_columns(cluster=pl.Series(names, dtype=pl.String)), found


def firsts(entries: Iterable[Iterable[Hashable]]) -> list[int]:
    """For each entry the number of the first that it shares a key with, directly or by way of others."""
    leader: list[int] = []
    holder: dict[Hashable, int] = {}

    def first(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for number, keys in enumerate(entries):
        leader.append(number)
        for key in keys:
            low, high = sorted((first(number), first(holder.setdefault(key, number))))
            leader[high] = low
    return [first(number) for number in range(len(leader))]


def _pairs(items: pl.DataFrame, texts: Sequence[str]) -> Iterator[Pair]:
    """The pairs of the items whose prompt stands in their config more than once."""
    places = list(zip(items["config"].to_list(), texts, strict=True))
    often = {place for place, count in Counter(places).items() if count > 1}
    for (config, text), row in zip(places, items.select("responses", "rank").iter_rows(named=True), strict=True):
        if (config, text) in often:
            yield from ((config, text, better, worse) for better, worse in _ordered(row))


def _ordered(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    ranked = [(rank, normalised(response)) for rank, response in zip(row["rank"], row["responses"], strict=True)]
    for (rank, better), (other, worse) in product(ranked, repeat=2):
        if rank < other and better != worse:
            yield better, worse
