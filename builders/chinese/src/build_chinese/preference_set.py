"""Build the preference set: filter a judge's votes by the reward model, resolve them, balance lengths (section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl
from pluralbench_release import Source
from pluralbench_runs import rng_for

from build_chinese.errors import TrainingDataError
from build_chinese.rankings import DROPPED, Row, ranked_pairs, resolve_rows, with_annotations
from build_chinese.recipe import PreferenceTable

PAIRS = pl.Schema({"prompt": pl.String, "better": pl.String, "worse": pl.String})
LENGTHS = pl.Schema({"prompt": pl.String, "response": pl.String, "length": pl.Int64})
NO_VOTE, TIE, DISAGREES, EQUAL, MARGIN, TOO_LONG, LONGER = (
    "no readable vote",
    "called equal by the judge",
    "the reward model prefers the other",
    "equal for the reward model",
    "margin too small",
    "too long for the reward model",
    "down-sampled for length",
)
IN_A_CYCLE = "equal after conflicts were resolved"
NO_PAIR = "no vote was kept"
NO_PAIR_AFTER = "no pair left after down-sampling for length"


@dataclass(frozen=True)
class PreferenceSet:
    """Preferences from a judge's votes: resolved rows, with the pairs that were kept as `annotations`.

    `votes`: dropped votes by reason. `dropped`: prompts (`rankings.DROPPED`). `steps`: pairs left after each step.
    """

    rows: list[Row]
    votes: dict[str, int]
    dropped: pl.DataFrame
    steps: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedPart:
    """The judge's part of a release: the rows that were voted on, and what became of the votes.

    `rewards` (`reward_model.REWARDS`) is None without distant supervision.
    """

    judge: str
    rows: list[Row]
    votes: pl.DataFrame
    rewards: pl.DataFrame | None
    preferences: PreferenceSet
    source: Source


def build_preference_set(
    rows: Sequence[Row],
    votes: pl.DataFrame,
    rewards: pl.DataFrame | None,
    strategies: PreferenceTable,
    *,
    margin: float,
    seed: int,
) -> PreferenceSet:
    """Turn votes (`votes.VOTES`) into a preference set.

    1. With `rewards` (distant supervision), keep the votes that the reward model agrees with by more than `margin`.
    2. Resolve the votes into ranks, and drop pairs that a cycle made equal.
    3. If `strategies.length` is set, drop pairs at random until the better response is the longer one as often as the
    shorter one.

    Raises:
        TrainingDataError: A reward is not finite.
    """
    first = pl.col("mark") == "1"
    pairs = votes.filter(pl.col("mark") != "s").select(
        "prompt",
        better=pl.when(first).then("first").otherwise("second"),
        worse=pl.when(first).then("second").otherwise("first"),
    )
    reasons = {NO_VOTE: votes["mark"].null_count(), TIE: votes.filter(mark="s").height}
    steps = {"votes that prefer one": pairs.height}
    graph = votes.drop_nulls("mark")
    if rewards is not None:
        pairs, dropped_votes = _filter_by_reward(pairs, rewards, margin)
        reasons |= dropped_votes
        steps["the reward model agrees"] = pairs.height
        graph = _as_graph(pairs)
    resolved, dropped = resolve_rows(with_annotations(rows, graph))
    dropped = dropped.with_columns(reason=pl.col("reason").replace({"no annotation": NO_PAIR}))
    ordered = [(row["id"], *pair) for row in resolved for pair in ranked_pairs(row)]
    in_order = pairs.join(
        pl.DataFrame(ordered, schema=PAIRS, orient="row"), on=PAIRS.names(), how="semi", maintain_order="left"
    )
    if rewards is None:
        reasons[IN_A_CYCLE] = pairs.height - in_order.height
        steps["kept by the ranks"] = in_order.height
    if strategies.length:
        balanced = balance_lengths(in_order, lengths_of(rows), seed)
        reasons[LONGER] = in_order.height - balanced.height
        in_order = balanced
        steps["balanced in length"] = in_order.height
    remaining = with_annotations(resolved, _as_graph(in_order))
    without_pairs = [
        (row["input"], NO_PAIR_AFTER, len(row["responses"]), sum(row["counts"]["judgements"].values()))
        for row in remaining
        if not row["annotations"]
    ]
    return PreferenceSet(
        [row for row in remaining if row["annotations"]],
        reasons,
        pl.concat([dropped, pl.DataFrame(without_pairs, schema=DROPPED, orient="row")]),
        steps,
    )


def balance_lengths(pairs: pl.DataFrame, lengths: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Drop pairs at random until the better response is the longer one as often as the shorter one.

    Pairs (`PAIRS`) are dropped from the larger of the two groups, over all prompts together. Pairs of equal length are
    kept (the paper does not say). The draw depends on the seed and the pairs, not on their order.
    """
    measured = _with_difference(pairs.with_row_index("number"), lengths, "length")
    groups = [measured.filter(pl.col("difference") > 0), measured.filter(pl.col("difference") < 0)]
    small, large = sorted(groups, key=lambda group: group.height)
    in_order = large.sort(*PAIRS.names(), "number")["number"]
    drawn = rng_for(seed, "length").sample(in_order.to_list(), large.height - small.height)
    return measured.filter(~pl.col("number").is_in(drawn)).select(PAIRS.names())


def lengths_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Measure each response in characters (columns of `LENGTHS`)."""
    lengths = [(row["id"], response["id"], len(response["content"])) for row in rows for response in row["responses"]]
    return pl.DataFrame(lengths, schema=LENGTHS, orient="row")


def _filter_by_reward(pairs: pl.DataFrame, rewards: pl.DataFrame, margin: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """Keep the pairs whose better response has the higher reward by more than `margin`; count the dropped by reason.

    A null reward means that the response was too long for the model. Rewards are a total order, so the kept pairs have
    no cycle after one pass; the paper gives no rule.
    """
    not_finite = rewards.filter(~pl.col("reward").is_finite())
    if not_finite.height:
        raise TrainingDataError(
            f"{not_finite.height:,} of {rewards.height:,} rewards are not finite, first {not_finite['response'][0]} of "
            f"the prompt {not_finite['prompt'][0]}; train the reward model at a lower learning rate."
        )
    pairs = _with_difference(pairs, rewards, "reward")
    difference = pl.col("difference")
    dropped = {
        DISAGREES: difference < 0,
        EQUAL: difference == 0,
        MARGIN: (difference > 0) & (difference <= margin),
        TOO_LONG: difference.is_null(),
    }
    counts = pairs.select(matches.sum().alias(reason) for reason, matches in dropped.items())
    return pairs.filter(difference > margin).select(PAIRS.names()), counts.row(0, named=True)


def _with_difference(pairs: pl.DataFrame, values: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add the value of the better response minus that of the worse; `values` has prompt, response and `name`."""
    for side in ("better", "worse"):
        of_side = values.select("prompt", pl.col("response").alias(side), pl.col(name).alias(f"{side}_value"))
        pairs = pairs.join(of_side, on=["prompt", side], how="left", validate="m:1", maintain_order="left")
    return pairs.with_columns(difference=pl.col("better_value") - pl.col("worse_value"))


def _as_graph(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.select("prompt", first="better", second="worse", mark=pl.lit("1"))
