"""How items count: the credit from 0 to 1 that an item gets for the decisions on its responses.

A benchmark's description names the rule (`Benchmark.credit`). Each rule is as published; "right" is a response of rank
1, "wrong" one of rank 2, and a comparison is strict unless a rule says otherwise:

- `pairs`: each pair of a right and a wrong response counts by itself.
- `second-on-ties`: a pair of responses A and B. Equal scores decide for B, as JudgeBench's code does for reward models.
- `best-of-n`: 1 if the right response is above every wrong one (RMB, best-of-n; RewardMATH). A tie is a loss.
- `best-of-n-shared`: the share of right responses among those with the highest score: 1/k if the right one is tied with
  k - 1 wrong ones (RewardBench 2).
- `mean-of-pairs`: the share of an item's pairs that are right, so that each item has the same weight (PPE correctness,
  conflict pairs; see `Columns.compared`). PPE's code counts a tie as right if the pair names the wrong response first;
  here a tie is not right.
- `ties`: RewardBench 2's subset Ties, see below.

An invalid score is a loss, and the decisions count it. Items that were dropped have no credit.

A judge that compares two responses gives verdicts instead of scores. By `Benchmark.vote` "mean", a pair counts by the
share of its orders in which the verdict is right (LLMBar, PersonalRewardBench); `second-on-ties` does not concern
verdicts, which are ties where they change with the order.

The rule `ties` is the score of RewardBench 2's subset Ties (Malik et al. 2025, section on ties; its code
`rewardbench/utils.py`). A question comes twice: with one right response (`ref:N`) and with several (`tied:N`). Of each
of the two prompts, the gap is the worst right score minus the best wrong one; the prompt is accurate if the gap is
above 0. The spread is the best right score of the tied prompt minus the worst. The score of a question is

    0.30 [gap_tied > 0] + 0.30 [gap_ref > 0] + 0.20 [gap_tied > spread] + 0.20 [min(gap_ref, gap_tied) > spread]
    + 0.01 tanh(min(gap_ref, gap_tied) / spread - 1)

and the subset's score is the mean over questions, -0.01 to 1.01. At a spread of 0, the last term is 0.01 with the sign
of the smaller gap, and 0 if this is 0 too: a model with equal scores everywhere gets 0.

A question with an invalid score gets nothing for the terms that need this score. A prompt whose twin was dropped has no
score: `unpaired` counts it.
"""

from math import comb

import numpy as np
import polars as pl

from pluralbench.config.judges import Vote
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.rules import twin_of
from pluralbench.data.texts import LETTERS

ITEM = ("config", "subset", "id", "cluster")
TIES_COUNT = {"second-on-ties", "best-of-n-shared", "ties"}
"""Rules by which a tie is not simply wrong."""
CREDITS = {**dict.fromkeys(ITEM, pl.String), "credit": pl.Float64}
SIDES = ("chosen", "rejected")
COUNTED = ("win", "loss", "tie", "invalid")
DRAWS, DRAWS_AT_ONCE = 100, 10


def item_credits(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return what counts and its credit: a row for each decision of the rule `pairs`, else for each item.

    Args:
        benchmark: Description of the benchmark.
        decisions: Decisions as `pluralbench.data.decisions.decide` returns them.

    Returns:
        The columns `config`, `subset`, `id`, `cluster` and `credit`.
    """
    counted = decisions.filter(pl.col("outcome").is_in(COUNTED))
    rules = {subset: benchmark.credit_of(subset) for subset in counted["subset"].unique(maintain_order=True)}
    parts = [pl.DataFrame(schema=CREDITS)]
    for rule in dict.fromkeys(rules.values()):
        subsets = [subset for subset, own in rules.items() if own == rule]
        part = counted.filter(pl.col("subset").is_in(subsets, nulls_equal=True))
        parts.append(
            _credits(rule, part, benchmark.vote).select(pl.col(name).cast(kind) for name, kind in CREDITS.items())
        )
    return pl.concat(parts)


def chance_credits(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the expected credits of distinct random scores, in the form of `item_credits`.

    Exact for all rules but `ties`, whose credits are means over `DRAWS` draws with a fixed seed.
    """
    credited = item_credits(benchmark, decisions)
    sizes = decisions.group_by("config", "id").agg(pl.col("chosen").n_unique(), pl.col("rejected").n_unique())
    numbers = credited.join(sizes, on=["config", "id"], how="left", maintain_order="left")
    rows = numbers.select("subset", "chosen", "rejected").iter_rows()
    expected = [_chance(benchmark.credit_of(subset), right, wrong) for subset, right, wrong in rows]
    frame = credited.with_columns(credit=pl.Series(expected, dtype=pl.Float64))
    ties = frame["credit"].is_null()
    if not ties.any():
        return frame
    own = [subset for subset in decisions["subset"].unique() if benchmark.credit_of(subset) == "ties"]
    drawn = _drawn_ties(decisions.filter(pl.col("outcome").is_in(COUNTED), pl.col("subset").is_in(own)))
    return pl.concat([frame.filter(~ties), drawn.select(frame.columns).cast(frame.schema)])


def _chance(rule: str, right: int, wrong: int) -> float | None:
    if rule == "ties":
        return None
    if rule == "best-of-n":
        return 1 / comb(right + wrong, right)
    return right / (right + wrong) if rule == "best-of-n-shared" else 0.5


def _drawn_ties(decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the mean credits of the prompts of Ties over random scores, which texts of responses draw, not ids."""
    sides = [decisions.select(name=pl.concat_str("config", "digest", side, separator="\n")) for side in SIDES]
    names = pl.concat(sides)["name"].unique().sort()
    better, worse = (
        side["name"].replace_strict(names, pl.int_range(len(names), eager=True)).to_numpy() for side in sides
    )
    rng = np.random.default_rng(0)
    draws = []
    rows = decisions.select(*KEYS, "id", "cluster", "rejected")
    for _ in range(DRAWS // DRAWS_AT_ONCE):
        scores = rng.random((DRAWS_AT_ONCE, len(names)))
        margins = scores[:, better] - scores[:, worse]
        # Each draw has configs of its own, so that one call computes several.
        several = [
            rows.with_columns(config=pl.lit(f"{draw}\n") + pl.col("config"), margin=pl.Series(margin))
            for draw, margin in enumerate(margins)
        ]
        draws.append(ties_credits(pl.concat(several)).with_columns(pl.col("config").str.replace(r"^\d\n", "")))
    keys = [name for name in CREDITS if name != "credit"]
    return pl.concat(draws).group_by(keys, maintain_order=True).agg(pl.col("credit").mean())


def _credits(rule: str, decisions: pl.DataFrame, vote: Vote) -> pl.DataFrame:
    won, tied = pl.col("outcome") == "win", pl.col("outcome") == "tie"
    compared = "verdict_chosen_first" in decisions.columns
    if rule == "pairs" or (rule == "second-on-ties" and compared):
        orders = pl.mean_horizontal(pl.col("verdict_chosen_first") == "A", pl.col("verdict_rejected_first") == "B")
        return decisions.with_columns(credit=orders if vote == "mean" and compared else won.cast(pl.Float64))
    if rule == "second-on-ties":
        second = tied & (pl.col("chosen") == LETTERS[1])
        return decisions.with_columns(credit=(won | second).cast(pl.Float64))
    if rule == "ties":
        return ties_credits(decisions)
    if rule == "best-of-n-shared":
        return _shared(decisions)
    credit = won.all() if rule == "best-of-n" else won.mean()
    return decisions.group_by(ITEM, maintain_order=True).agg(credit=credit.cast(pl.Float64))


def _shared(decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the share of right responses among those with the highest score."""
    outcome = pl.col("outcome")
    right = decisions.group_by(*ITEM, "chosen", maintain_order=True).agg(
        beaten=outcome.is_in(["loss", "invalid"]).any(), tied=(outcome == "tie").sum().cast(pl.Float64)
    )
    best = (~pl.col("beaten")).sum()
    # Right responses that no wrong one beats are all above the wrong ones, or all tied with the same of them.
    tied = pl.col("tied").filter(~pl.col("beaten")).min()
    above = pl.when(best == 0).then(0.0).when(tied == 0).then(1.0).otherwise(best / (best + tied))
    return right.group_by(ITEM, maintain_order=True).agg(credit=above)


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
