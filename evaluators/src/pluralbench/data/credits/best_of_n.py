"""Rules by which the response with the highest score counts.

- `best-of-n`: 1 if the right response is above every wrong one (RMB, best-of-n; RewardMATH). A tie is a loss.
- `best-of-n-shared`: the share of right responses among those with the highest score: 1/k if the right one is tied with
  k - 1 wrong ones (RewardBench 2).
"""

from math import comb

import polars as pl

from pluralbench.config.judges import Vote
from pluralbench.data.credits.credit import ITEM, Credit


def _strict(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    credit = (pl.col("outcome") == "win").all().cast(pl.Float64)
    return decisions.group_by(ITEM, maintain_order=True).agg(credit=credit)


def _shared(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    outcome = pl.col("outcome")
    right = decisions.group_by(*ITEM, "chosen", maintain_order=True).agg(
        beaten=outcome.is_in(["loss", "invalid"]).any(), tied=(outcome == "tie").sum().cast(pl.Float64)
    )
    best = (~pl.col("beaten")).sum()
    # Right responses that no wrong one beats are all above the wrong ones, or all tied with the same of them.
    tied = pl.col("tied").filter(~pl.col("beaten")).min()
    above = pl.when(best == 0).then(0.0).when(tied == 0).then(1.0).otherwise(best / (best + tied))
    return right.group_by(ITEM, maintain_order=True).agg(credit=above)


BEST_OF_N = Credit(
    "best-of-n",
    "an item is right if its right response is strictly above every wrong one",
    _strict,
    lambda right, wrong: 1 / comb(right + wrong, right),
)
BEST_OF_N_SHARED = Credit(
    "best-of-n-shared",
    "1/k credit if k responses tie for the highest score",
    _shared,
    lambda right, wrong: right / (right + wrong),
    ties_count=True,
)
