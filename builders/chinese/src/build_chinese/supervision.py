"""Distant supervision: a reward model that learned from people decides which of a judge's votes stay (section 4.2)."""

from dataclasses import dataclass

import networkx as nx
import polars as pl
from pluralbench_runs import stream

from build_chinese.errors import TrainingDataError

PAIRS = pl.Schema({"prompt": pl.String, "better": pl.String, "worse": pl.String})
NO_VOTE, TIE, DISAGREES, EQUAL, MARGIN, TOO_LONG, LONGER = (
    "no readable vote",
    "called equal by the judge",
    "the reward model prefers the other",
    "equal for the reward model",
    "margin too small",
    "too long for the reward model",
    "down-sampled for length",
)


@dataclass(frozen=True)
class Filtered:
    """The pairs that are kept (`PAIRS`), and how many votes were dropped, by reason."""

    pairs: pl.DataFrame
    dropped: dict[str, int]


def preferences_of(votes: pl.DataFrame) -> Filtered:
    """The votes that prefer one response, as pairs. votes: see `votes.VOTES`."""
    strict = votes.filter(pl.col("mark").is_in(["1", "2"]))
    first = pl.col("mark") == "1"
    pairs = strict.select(
        "prompt",
        better=pl.when(first).then("first").otherwise("second"),
        worse=pl.when(first).then("second").otherwise("first"),
    )
    dropped = {NO_VOTE: votes["mark"].null_count(), TIE: int((votes["mark"] == "s").sum())}
    return Filtered(pairs, dropped)


def agreed(pairs: pl.DataFrame, rewards: pl.DataFrame, margin: float) -> Filtered:
    """The pairs whose better response has a reward that is higher by more than `margin`.

    pairs: `PAIRS`. rewards: prompt, response, reward. A response without a reward (null) was too long for the model,
    and its pairs are dropped. Rewards are a total order, so the kept pairs have no cycle after one pass; the paper
    gives no rule. Raises `TrainingDataError` for a reward that is no finite number, and `AssertionError` for a cycle.
    """
    strange = rewards.filter(~pl.col("reward").is_finite())
    if strange.height:
        raise TrainingDataError(
            f"The reward model gave no number for {strange.height:,} of {rewards.height:,} responses, the first "
            f"{strange['response'][0]} of the prompt {strange['prompt'][0]}; train it at a lower learning rate."
        )
    pairs = _with_difference(pairs, rewards.rename({"reward": "value"}))
    difference = pl.col("difference")
    kept = pairs.filter(difference > margin)
    disagree, equal = pairs.filter(difference < 0).height, pairs.filter(difference == 0).height
    missing = pairs.filter(difference.is_null()).height
    small = pairs.height - kept.height - disagree - equal - missing
    dropped = {DISAGREES: disagree, EQUAL: equal, MARGIN: small, TOO_LONG: missing}
    found = Filtered(kept.select(PAIRS.names()), dropped)
    if not is_acyclic(found.pairs):
        raise AssertionError("What a reward model agrees with has a cycle, which its rewards rule out.")
    return found


def is_acyclic(pairs: pl.DataFrame) -> bool:
    """Whether no prompt's pairs lead from a response back to it."""
    graph = nx.DiGraph()
    graph.add_edges_from(
        ((prompt, better), (prompt, worse)) for prompt, better, worse in pairs.select(PAIRS.names()).iter_rows()
    )
    return bool(nx.is_directed_acyclic_graph(graph))


def debiased(pairs: pl.DataFrame, lengths: pl.DataFrame, seed: int) -> Filtered:
    """The pairs, balanced: the better response is the longer one in as many of them as it is the shorter one.

    pairs: `PAIRS`. lengths: prompt, response, length in characters. Pairs are dropped at random from the larger of the
    two groups, over all prompts together. Pairs of equal length are kept (the paper does not say). The draw depends on
    the seed and the pairs, not on their order.
    """
    values = lengths.select("prompt", "response", value=pl.col("length").cast(pl.Int64))
    measured = _with_difference(pairs.with_row_index("number"), values)
    difference = measured["difference"]
    groups = [measured.filter(difference > 0), measured.filter(difference < 0)]
    small, large = sorted(groups, key=lambda group: group.height)
    surplus = large.height - small.height
    in_order = large.sort(*PAIRS.names(), "number")["number"]
    drawn = stream(seed, "length").sample(in_order.to_list(), surplus)
    kept = measured.filter(~pl.col("number").is_in(drawn)).select(PAIRS.names())
    return Filtered(kept, {LONGER: surplus})


def _with_difference(pairs: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Pairs with the value of the better response less that of the worse. values: prompt, response, value."""
    for side in ("better", "worse"):
        of_side = values.rename({"response": side, "value": f"{side}_value"})
        pairs = pairs.join(of_side, on=["prompt", side], how="left", validate="m:1", maintain_order="left")
    return pairs.with_columns(difference=pl.col("better_value") - pl.col("worse_value"))
