"""Numbers that are computed from a judge's recorded calls, which the frames of a run do not contain."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_calls.verdicts import legacy_score
from pluralbench_measures.bootstrap import Estimate

from pluralbench.config import JudgeConfig
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.votes import CHOICES, SIDES, Votes
from pluralbench.metrics.metric import Numbers
from pluralbench.metrics.votes import token_numbers

if TYPE_CHECKING:
    from pluralbench_calls import Choice


def call_numbers(items: pl.DataFrame, votes: Votes | None, calls: pl.DataFrame, judging: JudgeConfig) -> Numbers:
    """Yield the tokens of votes, and M-RewardBench's accuracy.

    The latter gives half a point for a verdict that its code cannot read; only runs that compare responses have it.
    With a prompt of its own, the judge's verdicts are read as that says.
    """
    if votes is not None:
        yield from token_numbers(votes, calls)
    if SIDES[0][1] in items.columns:
        points = [*_half_points(items, votes, calls, judging)]
        mean = Estimate(sum(points) / len(points) if points else None, n=len(points))
        yield MetricKey("accuracy_with_invalid_as_half"), mean


def _half_points(
    items: pl.DataFrame, votes: Votes | None, calls: pl.DataFrame, judging: JudgeConfig
) -> Iterator[float]:
    """Yield 1 for each right reply, 1/2 for one that cannot be read, and else 0."""
    texts = dict(calls.select("key", "text").iter_rows())
    letters: dict[str, Choice] = {"chosen": "A", "rejected": "B"}
    if votes is None:
        sides = zip(CHOICES, SIDES, strict=True)
        replies = [(side, *reply) for side, columns in sides for reply in items.select(columns).iter_rows()]
    else:
        replies = votes.replies.select("first", "verdict", "calls").rows()
    for side, verdict, keys in replies:
        if verdict is not None and judging.prompt is None:
            yield legacy_score(texts[keys[-1]], letters[side])
        elif verdict is not None:
            yield float(verdict == letters[side]) if verdict in letters.values() else 0.5
