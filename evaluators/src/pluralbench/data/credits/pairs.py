"""Rules by which the pairs of a right and a wrong response count.

- `pairs`: each pair by itself. By `Benchmark.vote` "mean", a pair counts by the share of a judge's orders in which the
  verdict is right (LLMBar, PersonalRewardBench).
- `second-on-ties`: a pair of responses A and B. Equal scores decide for B, as JudgeBench's code does for reward models.
  This does not concern verdicts, which are ties where they change with the order.
- `mean-of-pairs`: the share of an item's pairs that are right, so that each item has the same weight (PPE correctness,
  conflict pairs; see `Columns.compared`). PPE's code counts a tie as right if the pair names the wrong response first;
  here a tie is not right.
"""

import polars as pl

from pluralbench.config.judges import Vote
from pluralbench.data.credits.credit import ITEM, Credit
from pluralbench.data.texts import LETTERS

WON = pl.col("outcome") == "win"


def _half(right: int, wrong: int) -> float:
    return 0.5


def _each(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    if vote != "mean" or "verdict_chosen_first" not in decisions.columns:
        return decisions.with_columns(credit=WON.cast(pl.Float64))
    orders = pl.mean_horizontal(pl.col("verdict_chosen_first") == "A", pl.col("verdict_rejected_first") == "B")
    return decisions.with_columns(credit=orders)


def _second_on_ties(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    if "verdict_chosen_first" in decisions.columns:
        return _each(decisions, vote)
    second = (pl.col("outcome") == "tie") & (pl.col("chosen") == LETTERS[1])
    return decisions.with_columns(credit=(WON | second).cast(pl.Float64))


def _mean(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    return decisions.group_by(ITEM, maintain_order=True).agg(credit=WON.mean().cast(pl.Float64))


PAIRS = Credit("pairs", "each pair counts", _each, _half)
SECOND_ON_TIES = Credit("second-on-ties", "equal scores decide for B", _second_on_ties, _half, ties_count=True)
MEAN_OF_PAIRS = Credit("mean-of-pairs", "an item's number is the share of its pairs that are right", _mean, _half)
