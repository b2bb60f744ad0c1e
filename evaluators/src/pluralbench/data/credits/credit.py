"""What a rule of credit is: how the decisions on an item's responses become its credit."""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from pluralbench.config.judges import Vote

ITEM = ("config", "subset", "id", "cluster")


class Credit(NamedTuple):
    """A rule of credit.

    Attributes:
        name: Value in `Benchmark.credit`.
        words: The rule as a phrase.
        credits: Returns the columns `ITEM` and `credit` of counted decisions, by the vote of a judge's two orders.
        chance: Returns the expected credit of distinct random scores for numbers of right and of wrong responses. None:
            `drawn` returns the expected credits of decisions, in the form of `credits`.
        ties_count: Whether a tie is not simply wrong.
        of_scores: Whether it needs the distances of scores, which verdicts on pairs do not give.
        unit: Returns the name that items share which are drawn together.
        check: Raises `DataError` for items that cannot count; some may be missing unless they are `complete`.
    """

    name: str
    words: str
    credits: Callable[[pl.DataFrame, Vote], pl.DataFrame]
    chance: Callable[[int, int], float] | None = None
    drawn: Callable[[pl.DataFrame], pl.DataFrame] = lambda decisions: decisions
    ties_count: bool = False
    of_scores: bool = False
    unit: Callable[[str], str] = str
    check: Callable[..., None] = lambda items, where, *, complete: None
