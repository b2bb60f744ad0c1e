"""The score of RewardBench 2's subset Ties (Malik et al. 2025, section on ties; its code `rewardbench/utils.py`).

A question comes twice: with one right response (`ref:N`) and with several (`tied:N`). Of each of the two prompts, the
gap is the worst right score minus the best wrong one; the prompt is accurate if the gap is above 0. The spread is the
best right score of the tied prompt minus the worst. The score of a question is

    0.30 [gap_tied > 0] + 0.30 [gap_ref > 0] + 0.20 [gap_tied > spread] + 0.20 [min(gap_ref, gap_tied) > spread]
    + 0.01 tanh(min(gap_ref, gap_tied) / spread - 1)

and the subset's score is the mean over questions, -0.01 to 1.01. At a spread of 0, the last term is 0.01 with the sign
of the smaller gap, and 0 if this is 0 too: a model with equal scores everywhere gets 0.

A question with an invalid score gets nothing for the terms that need this score. A prompt whose twin was dropped has no
score: `unpaired` counts it.
"""

import numpy as np
import polars as pl

from pluralbench.data.rules import twin_of

KEYS = ("config", "subset")


def ties_credits(decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the score of each question of Ties as two rows, one for each prompt, that both have it.

    Both rows have the cluster of the tied prompt, so that a question is one cluster.

    Args:
        decisions: Decisions on the prompts of Ties, with the ids `ref:NAME` and `tied:NAME`.

    Returns:
        The columns `config`, `subset`, `id`, `cluster` and `credit`.
    """
    prompts = _gaps(decisions)
    pairs = prompts.join(
        prompts.select(*KEYS, twin="id", other_gap="gap"), on=[*KEYS, "twin"], how="inner", maintain_order="left"
    )
    tied = pairs.filter(pl.col("id").str.starts_with("tied:"))
    gap, other, spread = (tied[name].to_numpy() for name in ("gap", "other_gap", "spread"))
    smaller = np.minimum(gap, other)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.nan_to_num(np.tanh(smaller / spread - 1))  # 0 for 0 / 0
    credit = 0.30 * (gap > 0) + 0.30 * (other > 0) + 0.20 * (gap > spread) + 0.20 * (smaller > spread) + 0.01 * margin
    scored = tied.select(*KEYS, "id", "twin", "cluster").with_columns(credit=pl.Series(credit, dtype=pl.Float64))
    twins = scored.with_columns(id="twin")
    return pl.concat([scored, twins]).select(*KEYS, "id", "cluster", "credit")


def unpaired(decisions: pl.DataFrame) -> int:
    """Count the prompts of Ties whose twin has no score."""
    ids = set(decisions.select("config", "id").iter_rows())
    return sum((config, twin_of(item_id)) not in ids for config, item_id in ids)


def _gaps(decisions: pl.DataFrame) -> pl.DataFrame:
    """Return gap and spread of each prompt; a gap is NaN if a score is invalid."""
    margin = pl.col("margin").fill_null(float("nan"))
    # All right responses are compared with each wrong one, so the margins against one of them show the spread.
    against = margin.filter(pl.col("rejected") == pl.col("rejected").first())
    prompts = decisions.group_by(*KEYS, "id", "cluster", maintain_order=True).agg(
        gap=pl.when(margin.is_nan().any()).then(float("nan")).otherwise(margin.min()),
        spread=against.max() - against.min(),
    )
    twins = [twin_of(item_id) for item_id in prompts["id"]]
    return prompts.with_columns(twin=pl.Series(twins, dtype=pl.String))
