"""Decisions from scores and verdicts: one row per pair of responses that the benchmark ranks differently."""

from collections.abc import Sequence
from itertools import chain
from math import nan
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Scored

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import BASE, DECISIONS, schema_of
from pluralbench.data.layouts import records_responses
from pluralbench.data.rules.first_error import step_decisions

_VERDICTS = ("verdict", "verdict_chosen_first", "verdict_rejected_first", "attempts", "reason")
JUDGED = schema_of(*DECISIONS, *_VERDICTS, "calls_chosen_first", "calls_rejected_first")
_ANSWERS = ("task", "row", "user", "truth", "answer", "certainty", "verdict", "choice", "choice_swapped")
COMPARED = schema_of(
    *DECISIONS, *_VERDICTS[:3], "probability_chosen_first", "probability_rejected_first", "tokens_cut", "reason"
)
SOFT = schema_of("probability_chosen_first", "probability_rejected_first", "bounds")
"""Columns of a judge with logprobs: in each order, the probability that the response that the judge sees first is
better, and the number of orders in which it is a bound, since a verdict is not among the likeliest tokens."""
JUDGED_PERSONAS = schema_of(*DECISIONS, *_ANSWERS, "sentences", "attempts", "reason", "calls", "calls_swapped")
SOFT_PERSONAS = schema_of("probability", "probability_swapped", "bounds")
"""The same columns of a persona judge, of the option that it sees first."""
_LENGTH = ("truncated", "tokens_cut", "reason")
SCORED_PAIRED = (*BASE, "score_chosen", "score_rejected", "tokens_chosen", "tokens_rejected", *_LENGTH)
SCORED_RANKED = (*BASE, "response", "rank", "score", "tokens", *_LENGTH, "outcome")
SCORED = "scored"
"""Outcome of a ranking's response with a finite score."""
NO_PAIR = (0, 0)
"""Placeholder for the pairs of a ranking whose responses all share a rank."""


def decide(
    items: pl.DataFrame, scores: Sequence[Sequence[float]] | pl.Series, cut: Sequence[int] | pl.Series = ()
) -> pl.DataFrame:
    """Make decisions, a frame of `DECISIONS`, from scores: the better response wins if its score is strictly higher.

    Args:
        items: Items of the benchmark. With `compared`, only these pairs of responses are decisions.
        scores: Scores of each item's responses; empty for a dropped item.
        cut: Number of truncated tokens per item. Default: none.
    """
    of, better, worse = _compared_pairs(items["compared"]) if lists_pairs(items) else _pairs(items["rank"])
    values = scores if isinstance(scores, pl.Series) else number_lists(scores)
    equal, dropped = better == worse, (values.list.len() == 0).to_numpy()[of]
    margin, scored = np.full(len(of), np.nan), ~(equal | dropped)
    right, wrong = _values_at(values, of[scored], better[scored], worse[scored])
    margin[scored] = right - wrong
    valid = np.isfinite(margin)
    outcome = np.select(
        [equal, dropped, ~valid, margin > 0, margin < 0], ["equal", "dropped", "invalid", "win", "loss"], "tie"
    )
    chosen, rejected = _values_at(items["response_ids"], of, better, worse)
    columns = {
        "chosen": chosen.set(pl.Series(equal), None),
        "rejected": rejected.set(pl.Series(equal), None),
        "outcome": outcome,
        "margin": pl.Series(margin).set(pl.Series(~valid), None),
        "truncated": (np.asarray(cut if len(cut) else np.zeros(items.height)) > 0)[of],
    }
    own = items.select(pl.col(name).cast(DECISIONS[name]) for name in BASE)[of]
    return own.hstack(pl.DataFrame(columns, schema_overrides=DECISIONS)).select(list(DECISIONS))


def _pairs(ranks: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return item number, index of the better and index of the worse response for each pair.

    Pairs are computed once for all items with the same ranking.
    """
    texts = ranks.cast(pl.List(pl.String)).list.join(" ").cast(pl.Categorical)
    _, firsts, kinds = np.unique(texts.to_physical().to_numpy(), return_index=True, return_inverse=True)
    pairs = [pairs_of(ranks[int(first)].to_list()) or [NO_PAIR] for first in firsts]
    counts = np.array([len(one) for one in pairs], np.int64)
    starts = np.cumsum(counts) - counts
    many = counts[kinds]
    of = np.repeat(np.arange(len(ranks)), many)
    place = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
    better, worse = np.array([*chain.from_iterable(pairs)], np.int64).reshape(-1, 2)[starts[kinds[of]] + place].T
    return of, better, worse


def _compared_pairs(pairs: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return what `_pairs` returns for listed pairs, the right response first."""
    lists = [entries or [NO_PAIR] for entries in pairs.to_list()]
    of = np.repeat(np.arange(len(lists)), [len(entries) for entries in lists])
    better, worse = np.array([*chain.from_iterable(lists)], np.int64).reshape(-1, 2).T
    return of, better, worse


def number_lists(lists: Sequence[Sequence[float]], kind: type[np.number[Any]] = np.float64) -> pl.Series:
    """Convert lists of numbers to a column, ten times as fast as polars does."""
    import pyarrow as pa

    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = np.fromiter(chain.from_iterable(lists), kind, int(sizes.sum()))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    # Of arrays of numpy, pyarrow would import pandas.
    arrays = (pl.Series(values).to_arrow() for values in (ends, flat))
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(*arrays)))


def _values_at(lists: pl.Series, of: NDArray[np.int64], *places: NDArray[np.int64]) -> list[pl.Series]:
    """Return the values of each list `of` at these positions, a column for each argument of `places`."""
    sizes = lists.list.len().to_numpy()
    starts, values = np.cumsum(sizes, dtype=np.int64) - sizes, lists.explode(empty_as_null=False)
    return [values[starts[of] + place] for place in places]


def score_items(benchmark: Benchmark, items: pl.DataFrame, scored: Scored, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the frame of `items.parquet`: one row per pair with its decision, or per response for rankings."""
    own = items.select(pl.col(BASE).cast(pl.String)).with_columns(
        tokens_cut=pl.Series(scored.tokens_cut or [0] * items.height, dtype=pl.Int64),
        reason=pl.Series([scored.dropped.get(place) for place in range(items.height)], dtype=pl.String),
        score=number_lists(scored.scores),
        tokens=number_lists(scored.tokens or [()] * items.height, np.int64),
        size=items["rank"].list.len(),
    )
    has_scores, has_tokens = (pl.col(name).list.len() > 0 for name in ("score", "tokens"))
    own = own.with_columns(
        dropped=~has_scores,
        truncated=pl.col("tokens_cut") > 0,
        score=pl.when(has_scores).then("score").otherwise(pl.lit(nan).repeat_by("size")),
        tokens=pl.when(has_tokens).then("tokens").otherwise(pl.lit(None, pl.Int64).repeat_by("size")),
    )
    score = pl.when("dropped").then(None).otherwise("score")
    if not records_responses(benchmark):
        sides = {
            f"{name}_{side}": pl.col(name).list.get(place)
            for name in ("score", "tokens")
            for place, side in enumerate(("chosen", "rejected"))
        }
        own = own.with_columns(**sides).with_columns(
            pl.when(~pl.col("dropped")).then(pl.col("score_chosen", "score_rejected"))
        )
        return own.select(SCORED_PAIRED).with_columns(decisions["outcome"], decisions["margin"])
    outcome = pl.when("dropped").then(pl.lit("dropped")).when(pl.col("score").is_finite()).then(pl.lit(SCORED))
    rows = own.with_columns(items["rank"], items["response_ids"].alias("response"))
    rows = rows.explode("response", "rank", "score", "tokens").with_columns(
        score=score, outcome=outcome.otherwise(pl.lit("invalid"))
    )
    frame = rows.select(SCORED_RANKED)
    return frame.with_columns(compared=_compared_names(items)) if lists_pairs(items) else frame


def lists_pairs(items: pl.DataFrame) -> bool:
    """Return whether items list the pairs of responses that count, in `compared`."""
    return "compared" in items.columns and items["compared"].null_count() < items.height


def _compared_names(items: pl.DataFrame) -> pl.Series:
    names: list[list[str]] = []
    for ids, pairs in items.select("response_ids", "compared").iter_rows():
        names += [[ids[wrong] for right, wrong in pairs or () if right == place] for place in range(len(ids))]
    return pl.Series(names, dtype=pl.List(pl.String))


def decisions_of(items: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions behind a run's `items.parquet`; `chosen` and `rejected` name the responses.

    If a judge picked responses, `position` is that of the picked one (null: invalid) in a list of `listed` responses
    (null: the responses were rated). Of a list whose responses it scored, or of several picks, the picked one has the
    highest score; 0: several have it.
    """
    if "response" not in items.columns:
        names = [] if "chosen" in items.columns else [pl.lit(side).alias(side) for side in ("chosen", "rejected")]
        return items.with_columns(names)
    if "threshold" in items.columns:
        return step_decisions(items)
    grouped = responses_by_item(items)
    decisions = decide(grouped, grouped["scores"], grouped["cut"])
    if "position" not in items.columns:
        return decisions
    best = pl.col("position").filter(pl.col("score").is_finite() & (pl.col("score") == pl.col("score").max()))
    picked = items.group_by("config", "id").agg(
        position=pl.when(best.len() > 1).then(0).otherwise(best.first()),
        listed=pl.when(pl.col("position").is_not_null().any()).then(pl.len()),
    )
    return decisions.join(picked, on=["config", "id"], how="left", maintain_order="left")


def responses_by_item(items: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each item of an `items.parquet` with a row per response.

    The columns are `BASE`, the lists `response_ids`, `rank` and `scores` (empty if the item was dropped), the number of
    tokens `cut`, and `compared` if the run has it.
    """
    grouped = items.group_by(*BASE, maintain_order=True).agg(
        response_ids="response",
        rank="rank",
        scores=pl.col("score").fill_null(float("nan")).filter((pl.col("outcome") != "dropped").all()),
        cut=pl.col("tokens_cut").max().fill_null(0),
        **({"names": pl.col("compared")} if "compared" in items.columns else {}),
    )
    if "names" in grouped.columns:
        grouped = grouped.with_columns(compared=_compared_places(grouped)).drop("names")
    return grouped


def _compared_places(grouped: pl.DataFrame) -> pl.Series:
    pairs = []
    for ids, names in grouped.select("response_ids", "names").iter_rows():
        place = {name: number for number, name in enumerate(ids)}
        pairs.append([[right, place[wrong]] for right, wrongs in enumerate(names) for wrong in wrongs])
    return pl.Series(pairs, dtype=pl.List(pl.List(pl.Int64)))
