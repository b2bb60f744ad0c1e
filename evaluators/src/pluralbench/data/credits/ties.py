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

import re

import numpy as np
import polars as pl
from pluralbench_runs import plural

from pluralbench.config.judges import Vote
from pluralbench.data.credits.credit import Credit
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError

TWIN = re.compile("(ref|tied):(.+)")
"""Ids: a prompt with one right response, and its twin with several."""
TWINS = {"ref": "tied", "tied": "ref"}
KEYS = ("config", "subset")
DRAWS, DRAWS_AT_ONCE = 100, 10


def twin_of(item_id: str) -> str:
    """Return the id of an item's twin: of "ref:5", "tied:5"."""
    kind, _, name = item_id.partition(":")
    return f"{TWINS[kind]}:{name}"


def unpaired(decisions: pl.DataFrame) -> int:
    """Count the prompts whose twin has no score."""
    ids = set(decisions.select("config", "id").iter_rows())
    return sum((config, twin_of(item_id)) not in ids for config, item_id in ids)


def _check(items: pl.DataFrame, where: str, *, complete: bool) -> None:
    ids = items["id"].to_list()
    unknown = [row_id for row_id in ids if not TWIN.fullmatch(row_id)]
    if unknown:
        raise DataError(f"{where}: the ids {first_ids(unknown)} of Ties are neither ref:NAME nor tied:NAME.")
    present = set(ids)
    single = [row_id for row_id in ids if twin_of(row_id) not in present]
    if single and complete:
        raise DataError(
            f"{where} has {plural(len(single), 'prompt')} of Ties without a twin (ids "
            f"{first_ids(single)}); add the twins, which count together with them."
        )


def _credits(decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    """Return the score of each question as two rows, one for each prompt, with the cluster of the tied prompt."""
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


def _drawn(decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the mean credits over `DRAWS` draws of scores with a fixed seed, whose order the texts give, not ids."""
    sides = [
        decisions.select(name=pl.concat_str("config", "digest", side, separator="\n"))["name"]
        for side in ("chosen", "rejected")
    ]
    names = pl.concat(sides).unique().sort()
    better, worse = (side.replace_strict(names, pl.int_range(len(names), eager=True)).to_numpy() for side in sides)
    rng = np.random.default_rng(0)
    draws = []
    rows = decisions.select(*KEYS, "id", "cluster", "rejected")
    for _ in range(DRAWS // DRAWS_AT_ONCE):
        scores = rng.random((DRAWS_AT_ONCE, len(names)))
        # Each draw has configs of its own, so that one call computes several.
        several = [
            rows.with_columns(config=pl.lit(f"{draw}\n") + pl.col("config"), margin=pl.Series(margin))
            for draw, margin in enumerate(scores[:, better] - scores[:, worse])
        ]
        credit = _credits(pl.concat(several), "unanimous")
        draws.append(credit.with_columns(pl.col("config").str.replace(r"^\d\n", "")))
    return pl.concat(draws).group_by([*KEYS, "id", "cluster"], maintain_order=True).agg(pl.col("credit").mean())


TIES = Credit(
    "ties",
    "the score of each prompt with its twin, at most 1.01",
    _credits,
    drawn=_drawn,
    ties_count=True,
    of_scores=True,
    unit=lambda item_id: min(item_id, twin_of(item_id)),
    check=_check,
)
