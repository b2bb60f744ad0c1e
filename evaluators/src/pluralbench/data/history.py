"""Pairs that a user decided earlier: which rows they are, and what they add to the user context."""

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import EarlierPair

from pluralbench.data.fields import HistoryRows
from pluralbench.data.texts import as_texts

COLUMNS = ("config", "id", "person", "prompt", "responses", "rank")


class History:
    """Pairs that people decided, in the order of the data: one row per prompt, with `COLUMNS` of the items.

    An item's history is the first `item["earlier"]` rows of its person.
    """

    def __init__(self, frame: pl.DataFrame | None = None) -> None:
        self.frame = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Null)) if frame is None else frame

    def before(self, item: Mapping[str, Any]) -> tuple[EarlierPair, ...]:
        """Return the pairs that an item's person decided earlier, oldest first.

        Pairs of the item's own prompt are left out, since their chosen response may be a response of the item.
        """
        if not item["earlier"]:
            return ()
        rows = self._rows.get((item["config"], item["person"]), [])[: item["earlier"]]
        return tuple(pair for pair in chain.from_iterable(rows) if pair.prompt != item["prompt"])

    def questions(self, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the earlier questions of an item's person as posts: each prompt's last message, latest first."""
        texts = (pair.prompt[-1]["content"] for pair in reversed(self.before(item)))
        return [{"id": None, "category": None, "text": text} for text in dict.fromkeys(texts) if text.strip()]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[tuple[EarlierPair, ...]]]:
        rows: dict[tuple[str, str], list[tuple[EarlierPair, ...]]] = {}
        for row in self.frame.iter_rows(named=True):
            pairs = [(row["responses"][better], row["responses"][worse]) for better, worse in pairs_of(row["rank"])]
            decided = tuple(EarlierPair(row["prompt"], chosen, rejected) for chosen, rejected in pairs)
            rows.setdefault((row["config"], row["person"]), []).append(decided)
        return rows


def is_history_row(frame: pl.DataFrame, earlier: HistoryRows | None) -> pl.Series:
    """Return which rows of a table are only earlier pairs and not scored."""
    if earlier is None or earlier.column is None:
        return pl.repeat(value=False, n=frame.height, eager=True)
    return as_texts(frame[earlier.column]).is_in(earlier.values).fill_null(value=False)


def with_history_length(items: pl.DataFrame, history: pl.DataFrame, earlier: HistoryRows | None) -> pl.DataFrame:
    """Set the column `earlier` of a table's items: the number of history rows of the same person before the item."""
    if earlier is None:
        return items
    if earlier.column is None:
        return items.with_columns(earlier=pl.int_range(pl.len(), dtype=pl.UInt32).over("person"))
    counts = history.group_by("person").agg(earlier=pl.len().cast(pl.UInt32))
    joined = items.drop("earlier").join(counts, on="person", how="left", maintain_order="left")
    return joined.with_columns(pl.col("earlier").fill_null(0)).select(items.columns)
