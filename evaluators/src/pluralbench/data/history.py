"""The pairs that a person decided before: which rows they are, and what is known of the person by them."""

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import EarlierPair

from pluralbench.data.benchmarks import HistoryRows
from pluralbench.data.texts import as_texts

COLUMNS = ("config", "id", "person", "prompt", "responses", "rank")


class History:
    """Pairs that people decided, in the order of the data; an item refers to the first `earlier` ones of its person.

    frame: with `COLUMNS` as of `pluralbench.data.rows_to_items.ITEMS`, a row for each prompt with its responses.
    """

    def __init__(self, frame: pl.DataFrame | None = None) -> None:
        self.frame = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Null)) if frame is None else frame

    def before(self, item: Mapping[str, Any]) -> tuple[EarlierPair, ...]:
        """The pairs that the person of an item decided before, the oldest first.

        Those of the very prompt are left out: what was chosen there may be a response of the item.
        """
        if not item["earlier"]:
            return ()
        known = self._rows.get((item["config"], item["person"]), [])[: item["earlier"]]
        return tuple(pair for pair in chain.from_iterable(known) if pair.prompt != item["prompt"])

    def questions(self, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What the person of an item asked before, as posts: the last message of each prompt, the latest first."""
        asked = (pair.prompt[-1]["content"] for pair in reversed(self.before(item)))
        return [{"id": None, "category": None, "text": text} for text in dict.fromkeys(asked) if text.strip()]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[tuple[EarlierPair, ...]]]:
        rows: dict[tuple[str, str], list[tuple[EarlierPair, ...]]] = {}
        for row in self.frame.iter_rows(named=True):
            pairs = [(row["responses"][better], row["responses"][worse]) for better, worse in pairs_of(row["rank"])]
            decided = tuple(EarlierPair(row["prompt"], chosen, rejected) for chosen, rejected in pairs)
            rows.setdefault((row["config"], row["person"]), []).append(decided)
        return rows


def is_history_row(frame: pl.DataFrame, earlier: HistoryRows | None) -> pl.Series:
    """Which rows of a table are an earlier pair alone, and not scored."""
    if earlier is None or earlier.column is None:
        return pl.repeat(value=False, n=frame.height, eager=True)
    return as_texts(frame[earlier.column]).is_in(earlier.values).fill_null(value=False)


def with_history_length(items: pl.DataFrame, history: pl.DataFrame, earlier: HistoryRows | None) -> pl.DataFrame:
    """Items of a table with the number of rows of its history that are before them, in the column `earlier`."""
    if earlier is None:
        return items
    if earlier.column is None:
        return items.with_columns(earlier=pl.int_range(pl.len(), dtype=pl.UInt32).over("person"))
    known = history.group_by("person").agg(earlier=pl.len().cast(pl.UInt32))
    joined = items.drop("earlier").join(known, on="person", how="left", maintain_order="left")
    return joined.with_columns(pl.col("earlier").fill_null(0)).select(items.columns)
