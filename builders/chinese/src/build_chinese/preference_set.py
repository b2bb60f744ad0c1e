"""The preference set: a judge's votes, filtered by the reward model, resolved, and balanced in length (section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from build_chinese.rankings import DROPPED, Row, ranked_pairs, resolve_rows
from build_chinese.recipe import PreferenceTable
from build_chinese.supervision import PAIRS, agreed, debiased, preferences_of

IN_A_CYCLE = "equal after conflicts were resolved"
NO_PAIR = "no vote was kept"
NO_PAIR_AFTER = "no pair left after down-sampling for length"
LENGTHS = pl.Schema({"prompt": pl.String, "response": pl.String, "length": pl.Int64})


@dataclass(frozen=True)
class Judged:
    """What became of a judge's votes.

    rows: resolved, with the pairs that were kept as `annotations`. votes: how many were dropped, by reason. dropped:
    the prompts that were dropped (`rankings.DROPPED`). steps: how many pairs are left after each step, by its name.
    """

    rows: list[Row]
    votes: dict[str, int]
    dropped: pl.DataFrame
    steps: dict[str, int] = field(default_factory=dict)


def judged(
    rows: Sequence[Row],
    votes: pl.DataFrame,
    rewards: pl.DataFrame | None,
    strategies: PreferenceTable,
    *,
    margin: float,
    seed: int,
) -> Judged:
    """Turn votes into a preference set.

    rows: with `id` and `responses`. votes: `votes.VOTES`. rewards: `reward_model.REWARDS`, None without distant
    supervision. Three steps: with distant supervision a vote is kept if the reward model agrees by more than `margin`;
    the votes are resolved into ranks, and pairs that a cycle made equal are dropped; if `strategies` says so, pairs are
    drawn so that the better response is the longer one as often as the shorter one.
    """
    first = preferences_of(votes)
    reasons, pairs = dict(first.dropped), first.pairs
    steps = {"votes that prefer one": pairs.height}
    graph = votes.filter(pl.col("mark").is_not_null()).select("prompt", "first", "second", "mark")
    if rewards is not None:
        filtered = agreed(pairs, rewards.select("prompt", "response", "reward"), margin)
        reasons |= filtered.dropped
        pairs = filtered.pairs
        steps["the reward model agrees"] = pairs.height
        graph = _as_graph(pairs)
    resolved, dropped = resolve_rows(_with_annotations(rows, graph))
    dropped = dropped.with_columns(reason=pl.col("reason").replace({"no annotation": NO_PAIR}))
    in_order = pairs.join(_ordered(resolved), on=PAIRS.names(), how="semi", maintain_order="left")
    if rewards is None:
        reasons[IN_A_CYCLE] = pairs.height - in_order.height
        steps["kept by the ranks"] = in_order.height
    if strategies.length:
        balanced = debiased(in_order, lengths_of(rows), seed)
        reasons |= balanced.dropped
        in_order = balanced.pairs
        steps["balanced in length"] = in_order.height
    left = _with_annotations(resolved, _as_graph(in_order))
    gone = [
        (row["input"], NO_PAIR_AFTER, len(row["responses"]), sum(row["counts"]["judgements"].values()))
        for row in left
        if not row["annotations"]
    ]
    return Judged(
        [row for row in left if row["annotations"]],
        reasons,
        pl.concat([dropped, pl.DataFrame(gone, schema=DROPPED, orient="row")]),
        steps,
    )


def pairs_by_row(rows: Sequence[Row]) -> list[list[tuple[str, str]]]:
    """For each row the (better, worse) ids of those of its annotations that prefer one."""
    return [[(a, b) if mark == "1" else (b, a) for a, b, mark in row["annotations"] if mark != "s"] for row in rows]


def lengths_of(rows: Sequence[Row]) -> pl.DataFrame:
    """How long each response is, in characters (`LENGTHS`)."""
    found = [(row["id"], response["id"], len(response["content"])) for row in rows for response in row["responses"]]
    return pl.DataFrame(found, schema=LENGTHS, orient="row")


def _as_graph(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.select("prompt", first="better", second="worse", mark=pl.lit("1"))


def _with_annotations(rows: Sequence[Row], graph: pl.DataFrame) -> list[Row]:
    """The rows with those of the graph as their annotations. graph: prompt, first, second, mark."""
    found = dict(
        graph.group_by("prompt", maintain_order=True).agg(pl.concat_list("first", "second", "mark")).iter_rows()
    )
    return [row | {"annotations": found.get(row["id"], [])} for row in rows]


def _ordered(rows: Sequence[Row]) -> pl.DataFrame:
    """The pairs that each row's annotations order, directly or by way of others, of `PAIRS`."""
    found = [(row["id"], *pair) for row in rows for pair in ranked_pairs(row)]
    return pl.DataFrame(found, schema=PAIRS, orient="row")
