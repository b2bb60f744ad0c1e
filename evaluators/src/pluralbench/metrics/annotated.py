"""Votes of people and the answers of a run to the same items, as arrays.

A vote counts if it picks a response: a vote for a tie does not say which response is better, so ties have their own
count. The run's answer to an item is its response with the highest score, or the one that a judge prefers. It has none
if scores are tied or invalid, and then disagrees with every vote. Items without an answer, since they were dropped or
not asked, do not count; their votes are counted.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from pluralbench_measures.annotators import count_votes
from pluralbench_measures.bootstrap import Array
from pluralbench_measures.crossed import UNKNOWN, Ints, Votes

from pluralbench.data.annotations import ATTRIBUTE
from pluralbench.data.rules.accuracies import in_overall
from pluralbench.metrics.decided import Decided

ITEM = ["config", "id"]
NONE = -1
"""Place of a response that an item does not have: of the run's answer, or of the majority's."""


@dataclass(frozen=True)
class Annotated:
    """Votes of people on the items that a run answered, as arrays.

    Attributes:
        ids: Config and id of each item.
        configs: Names of the configs.
        config: Number of each item's config. Shape (items,).
        cluster: Number of each item's cluster. Shape (items,).
        responses: Number of each item's responses. Shape (items,).
        scores: Scores by item and response, NaN for padding and for items without finite scores.
        answer: Place of the response that the run prefers, `NONE` if none. Shape (items,).
        majority: Place of the response that the benchmark calls the best by its votes, `NONE` if none. Shape (items,).
        item: Number of each vote's item, of votes for a response. Shape (votes,).
        response: Place of the response that a vote is for. Shape (votes,).
        person: Number of each vote's person, `UNKNOWN` if not known. Shape (votes,).
        attributes: The person's attributes, by name; None if not known. Each of shape (votes,).
        ties: Number of votes for a tie, by item. Shape (items,).
        without_answer: Number of votes on items without an answer of the run.
    """

    ids: pl.DataFrame
    configs: list[str]
    config: Ints
    cluster: Ints
    responses: Ints
    scores: Array
    answer: Ints
    majority: Ints
    item: Ints
    response: Ints
    person: Ints
    attributes: dict[str, pl.Series]
    ties: Array
    without_answer: int

    @cached_property
    def counts(self) -> Array:
        """Votes by item and response."""
        return count_votes(self.item, self.response, self.scores.shape)

    @cached_property
    def votes(self) -> Votes:
        """Prompts and people of the votes."""
        return Votes(self.cluster[self.item], self.person)

    @cached_property
    def credit(self) -> Array:
        """Whether each vote is for the response that the run prefers."""
        return np.asarray(self.answer[self.item] == self.response, dtype=np.float64)


def annotated(decided: Decided) -> Annotated | None:
    """Match the votes of people with a run's answers; None without votes, or without one answer to each item."""
    if decided.annotations is None:
        return None
    answers = _answers(decided)
    if answers is None:
        return None
    answers = answers.filter(in_overall(decided.benchmark))
    annotations = decided.annotations.filter(in_overall(decided.benchmark))
    # Sums depend on their order in the last digits, which names and rows must not change.
    contents = decided.decisions.select(*ITEM, "digest").unique(ITEM, keep="first")
    answers = answers.join(contents, on=ITEM, how="left", maintain_order="left")
    answers = answers.sort("config", "digest", maintain_order=True)
    shown = answers.filter("asked").with_row_index("item")
    votes = annotations.join(shown.select(*ITEM, "item"), on=ITEM, how="inner", maintain_order="left")
    picks = votes.drop_nulls("response")
    items = shown.height
    ties = votes.filter(pl.col("response").is_null())["item"].to_numpy()
    scores, answer = _scores_and_answers(shown, int(picks["response"].max() or 0) + 1)  # type: ignore[arg-type]
    return Annotated(
        ids=shown.select(ITEM),
        configs=shown["config"].unique().sort().to_list(),
        config=numbered(shown["config"]),
        cluster=numbered(shown["cluster"]),
        responses=shown["responses"].to_numpy().astype(np.int64),
        scores=scores,
        answer=answer,
        majority=shown["majority"].fill_null(NONE).to_numpy().astype(np.int64),
        item=picks["item"].to_numpy().astype(np.int64),
        response=picks["response"].to_numpy().astype(np.int64),
        person=numbered(picks["annotator"]),
        attributes={name.removeprefix(ATTRIBUTE): picks[name] for name in picks.columns if name.startswith(ATTRIBUTE)},
        ties=np.bincount(ties.astype(np.int64), minlength=items).astype(np.float64),
        without_answer=annotations.height - votes.height,
    )


def numbered(names: pl.Series) -> Ints:
    """Number names from 0; `UNKNOWN` for null."""
    return np.asarray((names.rank("dense").cast(pl.Int64) - 1).fill_null(UNKNOWN).to_numpy(), dtype=np.int64)


def _answers(decided: Decided) -> pl.DataFrame | None:
    """Return for each item its scores or its preferred response, the majority's response, and whether it was asked."""
    rows, decisions = decided.responses, decided.decisions
    first = decisions.unique(ITEM, keep="first", maintain_order=True)
    outcome = pl.col("outcome")
    if rows is not None and "score_chosen" in rows.columns:
        both = pl.col("score_chosen", "score_rejected").cast(pl.Float64)
        scores = rows.select(*ITEM, scores=pl.concat_list(both))
        # A pair that the votes call equal may have been dropped, too.
        dropped = (outcome == "dropped") | ((outcome == "equal") & pl.col("scores").list.drop_nulls().list.len().lt(2))
        return first.join(scores, on=ITEM, how="left", maintain_order="left").select(
            *ITEM,
            "cluster",
            "scores",
            responses=2,
            asked=~dropped,
            majority=pl.when(outcome != "equal").then(0),
            answer=pl.lit(None, pl.Int64),
        )
    if rows is not None and "score" in rows.columns:
        best = pl.col("rank") == pl.col("rank").min()
        return rows.group_by(ITEM, maintain_order=True).agg(
            cluster=pl.col("cluster").first(),
            responses=pl.len(),
            asked=(outcome != "dropped").all(),
            majority=pl.when(best.sum() == 1).then(best.arg_max().cast(pl.Int64)),
            scores=pl.col("score").cast(pl.Float64),
            answer=pl.lit(None, pl.Int64),
        )
    if first.height < decisions.height:
        return None  # verdicts on pairs of more responses do not give one answer
    answer = pl.when(outcome == "win").then(0).when(outcome == "loss").then(1)
    return first.select(
        *ITEM,
        "cluster",
        responses=2,
        asked=~outcome.is_in(["dropped", "equal"]),
        majority=pl.when(outcome != "equal").then(0),
        scores=pl.lit(None, pl.List(pl.Float64)),
        answer=answer,
    )


def _scores_and_answers(items: pl.DataFrame, responses: int) -> tuple[Array, Ints]:
    """Return the scores, padded with NaN, and the answers: the highest score if all are finite and it is alone."""
    lists = items["scores"].to_list()
    width = max([responses, 2, *(len(one) for one in lists if one is not None)])
    scores = np.full((len(lists), width), np.nan)
    answer = items["answer"].fill_null(NONE).to_numpy().astype(np.int64).copy()
    for place, own in enumerate(lists):
        if own is None or not own or None in own or not np.isfinite(own).all():
            continue
        scores[place, : len(own)] = own
        best = max(own)
        if own.count(best) == 1:
            answer[place] = own.index(best)
    return scores, answer
