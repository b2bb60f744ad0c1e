"""Votes: one verdict on a pair from the replies in both orders, and one reply from several samples and judges.

Several replies to one question vote by one of two rules. Replies that cannot be read do not vote; if none can be read,
the vote is invalid.

- `majority`: the most frequent verdict, pick or rating. If several are the most frequent, the vote is tied: a tied
  verdict is a tie, tied picks are equally good, and tied ratings count by their mean.
- `mean`: the mean score of each response. A verdict counts by the difference of the scores that its reply gives both
  responses, or without scores 1 for A, 0 for a tie and -1 for B; the sign of the mean decides, and the vote is tied if
  replies for A and B cancel out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pluralbench.config.judges import Vote, VoteRule
from pluralbench.data.column_types import schema_of
from pluralbench.data.decisions import SCORED
from pluralbench.errors import RunError

Columns = tuple[tuple[str, str], tuple[str, str]]
"""Columns of the letter and the calls of a reply: in the data's order, and with the responses swapped."""
Array = NDArray[np.float64]

INVALID, CHANGED = "invalid", "changed"
SWAPPED = {"A": "B", "B": "A", "C": "C"}
SIDES: Columns = (("verdict_chosen_first", "calls_chosen_first"), ("verdict_rejected_first", "calls_rejected_first"))
VERDICTS = {
    "A": ("chosen", "win"),
    "B": ("rejected", "loss"),
    "C": ("tie", "tie"),
    CHANGED: ("tie", "tie"),
    INVALID: (INVALID, INVALID),
}
"""Verdict and outcome by the combined letter of the replies; A is the chosen response."""
CHOICES = ("chosen", "rejected")
LETTERS = ("A", "B", "C", INVALID)
REPLIES_COMPARED = schema_of(
    *("config", "id", "chosen", "rejected", "first", "judge", "sample", "verdict", "margin", "reason", "calls")
)
"""Columns of `replies.parquet` if a judge compares responses. first: side of the response that it saw first. margin:
score of that response less that of the other one, if the reply has scores."""
LETTER_SCORES = {"A": 1.0, "B": -1.0, "C": 0.0}
REPLIES_SCORED = schema_of("config", "id", "response", "judge", "sample", "score", "reason", "calls")
"""Columns of `replies.parquet` if a judge scores responses or picks one, which has the score 1, the others 0."""


def combined_verdict(row: Mapping[str, Any], columns: Columns) -> str:
    """Combine the replies of a row into a letter, `INVALID` or `CHANGED`, with A and B in the order of the data.

    One invalid reply makes the verdict invalid. `CHANGED` is a verdict that changes with the order. It is not the
    answer C (a tie): otherwise a judge that always chooses the first response would be right about every tie.
    """
    (first, _), (second, _) = columns
    letters = {row[first], SWAPPED.get(row[second], row[second])} - {None}
    if INVALID in letters:
        return INVALID
    return str(letters.pop()) if len(letters) == 1 else CHANGED


def signed_vote(row: Mapping[str, Any], columns: Columns) -> str:
    """Combine the replies of a row by JudgeBench's vote over both orders, with A and B in the order of the data.

    A reply for A counts +1, one for B -1, a tie or an invalid reply 0, and the sign of the sum decides: A and a tie are
    A, unlike in `combined_verdict`. Else it is `INVALID` if a reply is invalid, "C" if all are ties, or `CHANGED`.
    Source: JudgeBench's code, `utils/metrics.py`.
    """
    (first, _), (second, _) = columns
    letters = [letter for letter in (row[first], SWAPPED.get(row[second], row[second])) if letter is not None]
    total = letters.count("A") - letters.count("B")
    if total:
        return "A" if total > 0 else "B"
    if INVALID in letters:
        return INVALID
    return "C" if set(letters) == {"C"} else CHANGED


def verdict(row: Mapping[str, Any], vote: Vote = "unanimous") -> tuple[str, str]:
    """Combine the replies in a row, by `Benchmark.vote`, into a verdict (a side, "tie" or "invalid") and an outcome."""
    letters = {name: row.get(name) for name, _ in SIDES}
    return VERDICTS[(signed_vote if vote == "signed" else combined_verdict)(letters, SIDES)]


class Tally(NamedTuple):
    """Rows of `items.parquet` with the votes of some judges and samples, and how many votes are tied, of how many."""

    items: pl.DataFrame
    tied: int
    votes: int


@dataclass(frozen=True)
class Votes:
    """Several replies to each question of a run, and how they vote.

    A question is a pair in one order, a response to rate, or the list of an item's responses to pick from.

    Attributes:
        items: The rows of `items.parquet`.
        replies: The rows of `replies.parquet`: those of a question together, by judge and sample.
        rule: Rule of the vote. None: majority of verdicts and picks, mean of ratings.
        vote: How the verdicts in both orders of a pair combine; see `Benchmark.vote`.

    Raises:
        RunError: If there is not one reply of each judge and sample to each question.
    """

    items: pl.DataFrame
    replies: pl.DataFrame
    rule: VoteRule | None = None
    vote: Vote = "unanimous"

    def __post_init__(self) -> None:
        count = len(self.judges) * self.samples
        keys = self._asked.drop("row").columns
        expected = self._asked.select(keys)[np.repeat(np.arange(self._asked.height), count)]
        same = {"judge": np.repeat(self.judges, self.samples), "sample": np.arange(self.samples)}
        for name, values in same.items():
            series = pl.Series(name, values, dtype=self.replies.schema[name])
            expected = expected.with_columns(pl.concat([series] * (max(expected.height, 1) // max(len(series), 1))))
        if not expected.equals(self.replies.select(expected.columns)):
            raise RunError("The replies are not one of each judge and sample to each question of the items.")

    @cached_property
    def judges(self) -> list[str]:
        """Names of the judges."""
        return list(self.replies["judge"].unique(maintain_order=True))

    @cached_property
    def samples(self) -> int:
        """Number of replies of each judge to a question."""
        return self.replies["sample"].n_unique()

    @property
    def compared(self) -> bool:
        """Whether the judges compare two responses."""
        return SIDES[0][0] in self.items.columns

    @cached_property
    def _asked(self) -> pl.DataFrame:
        rows = self.items.with_row_index("row")
        key = ("row", "config", "id")
        if "response" in rows.columns:
            return rows.select(*key, "response")
        if not self.compared:
            sides = [rows.select(*key, response=pl.lit(side)) for side in CHOICES]
        else:
            sides = [
                rows.filter(pl.col(column).is_not_null()).select(*key, "chosen", "rejected", first=pl.lit(side))
                for (column, _), side in zip(SIDES, CHOICES, strict=True)
            ]
        return pl.concat(sides).sort("row", maintain_order=True)

    @cached_property
    def _values(self) -> Array:
        """The letter's place in `LETTERS`, or the score; NaN if it is invalid. Shape (asked, judges, samples)."""
        if self.compared:
            places = self.replies["verdict"].replace_strict(
                LETTERS, [*range(len(LETTERS))], default=None, return_dtype=pl.Float64
            )
            values = places.set(places == len(LETTERS) - 1, None)
        else:
            values = self.replies["score"]
        flat = values.fill_null(float("nan")).to_numpy()
        return flat.reshape(self._asked.height, len(self.judges), self.samples)

    @cached_property
    def _picked(self) -> NDArray[np.bool_]:
        """Whether a row is of a list that the judge saw at once. Shape (asked,)."""
        if "position" not in self.items.columns:
            return np.zeros(self._asked.height, np.bool_)
        return self.items["position"].is_not_null().to_numpy()

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first row of each question: all rows of a list are one, each other row is one of its own."""
        keys = self._asked.select(pl.struct("config", "id").rle_id()).to_series().to_numpy()
        first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        return np.flatnonzero(first | ~self._picked)

    @cached_property
    def _margins(self) -> Array:
        """How far the reply is for the first response that the judge saw. Shape (asked, judges, samples)."""
        letters = self.replies["verdict"].replace_strict(LETTER_SCORES, default=None, return_dtype=pl.Float64)
        margins = self.replies.select(pl.coalesce("margin", letters)).to_series().set(letters.is_null(), None)
        return margins.fill_null(float("nan")).to_numpy().reshape(self._values.shape)

    def of(self, judges: Sequence[int], samples: Sequence[int]) -> Tally:
        """Return the votes of these judges and samples, by their places."""
        if self.compared:
            values = self._margins if self.rule == "mean" else self._values
            return self._compared(values[:, judges][:, :, samples].reshape(self._asked.height, -1))
        replies = self._values[:, judges][:, :, samples].reshape(self._asked.height, -1)
        lists, scores, tied = self._picked, np.full(len(replies), np.nan), 0
        for own, vote in ((lists, self._pick_votes), (~lists, self._rating_votes)):
            if own.any():
                scores[own], ties = vote(replies[own])
                tied += ties
        return Tally(self._with_scores(scores), tied, len(self._starts))

    def _compared(self, replies: Array) -> Tally:
        valid = np.isfinite(replies).any(1)
        if self.rule == "mean":
            mean = _mean(replies).round(9)
            place = np.select([mean > 0, mean < 0], [0, 1], 2)
            tied = (mean == 0) & (np.nan_to_num(replies) != 0).any(1)
        else:
            counts = np.stack([(replies == place).sum(1) for place in range(len(LETTERS) - 1)], axis=1)
            tied = (counts == counts.max(1, keepdims=True)).sum(1) > 1
            place = np.where(tied, 2, counts.argmax(1))
        letters = np.array(LETTERS)[np.where(valid, place, len(LETTERS) - 1)]
        sides = []
        for side, (column, _) in zip(CHOICES, SIDES, strict=True):
            own = (self._asked["first"] == side).to_numpy()
            voted = np.full(self.items.height, None, dtype=object)
            voted[self._asked["row"].to_numpy()[own]] = letters[own]
            sides.append(pl.Series(column, voted.tolist(), dtype=pl.String))
        combined = {
            pair: verdict({name: letter for (name, _), letter in zip(SIDES, pair, strict=True)}, self.vote)
            for pair in product((*LETTERS, None), repeat=2)
            if pair != (None, None)
        } | {(None, None): (None, "equal")}
        verdicts, outcomes = zip(*(combined[pair] for pair in zip(*sides, strict=True)), strict=True)
        items = self.items.with_columns(
            *sides, verdict=pl.Series(verdicts, dtype=pl.String), outcome=pl.Series(outcomes, dtype=pl.String)
        )
        return Tally(items, int((tied & valid).sum()), len(replies))

    def _pick_votes(self, replies: Array) -> tuple[Array, int]:
        """Return the score of each response of lists, and the number of tied votes."""
        if self.rule == "mean" or (self.rule is None and not np.isin(replies[np.isfinite(replies)], (0, 1)).all()):
            return _mean(replies), 0
        keys = self._asked.select(pl.struct("config", "id").rle_id()).to_series().to_numpy()[self._picked]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(keys))))
        filled = np.where(np.isfinite(replies), replies, -np.inf)
        best = (filled == np.maximum.reduceat(filled, starts)[of]) & np.isfinite(replies)
        # Responses that share the best score of a reply share its vote.
        shares = (best / np.maximum(np.add.reduceat(best, starts, dtype=np.float64), 1)[of]).sum(1).round(9)
        most = np.maximum.reduceat(shares, starts)[of]
        winners = shares == most
        many = np.add.reduceat(winners, starts, dtype=np.int64)
        scores = np.where(most > 0, winners / many[of], np.nan)
        return scores, int(((many > 1) & (most[starts] > 0)).sum())

    def _rating_votes(self, replies: Array) -> tuple[Array, int]:
        if self.rule != "majority":
            return _mean(replies), 0
        counts = (replies[:, :, None] == replies[:, None, :]).sum(2)
        modes = np.where((counts == counts.max(1, keepdims=True)) & np.isfinite(replies), replies, np.nan)
        scores = _mean(modes)
        tied = np.isfinite(modes) & (modes != scores[:, None])
        return scores, int(tied.any(1).sum())

    def _with_scores(self, scores: Array) -> pl.DataFrame:
        kept = pl.col("outcome").is_in(["dropped", "equal"])
        if "response" in self.items.columns:
            outcome = pl.when(kept).then("outcome").when(pl.col("score").is_finite()).then(pl.lit(SCORED))
            return self.items.with_columns(score=pl.Series(scores)).with_columns(
                outcome=outcome.otherwise(pl.lit(INVALID))
            )
        chosen, rejected = scores.reshape(-1, 2).T
        margin = pl.Series("margin", chosen - rejected).fill_nan(None)
        won = pl.when(margin > 0).then(pl.lit("win")).when(margin < 0).then(pl.lit("loss")).otherwise(pl.lit("tie"))
        return self.items.with_columns(
            margin,
            score_chosen=pl.Series(chosen),
            score_rejected=pl.Series(rejected),
            outcome=pl.when(kept).then("outcome").when(margin.is_null()).then(pl.lit(INVALID)).otherwise(won),
        )

    def agreement(self, judge: int) -> tuple[pl.DataFrame, pl.Series]:
        """Return how far the readable replies of a judge, given by its place, to each question agree.

        For each question with two readable replies or more: its row of `items`, and the share of pairs of replies that
        are the same.
        """
        replies = self._values[:, judge]
        readable = np.isfinite(replies)
        same = np.logical_and.reduceat(replies[:, :, None] == replies[:, None, :], self._starts)
        count = readable[self._starts].sum(1)
        several = count >= 2
        pairs = count[several] * (count[several] - 1)
        rows = self._asked["row"].to_numpy()[self._starts[several]]
        return self.items[rows], pl.Series((same[several].sum((1, 2)) - count[several]) / pairs, dtype=pl.Float64)

    def invalid(self, judge: int) -> int:
        """Return the number of replies of a judge that cannot be read."""
        return int((~np.isfinite(self._values[self._starts, judge])).sum())


def _mean(replies: Array) -> Array:
    """The mean of the finite numbers of each row; NaN if there is none."""
    finite = np.isfinite(replies)
    count = finite.sum(1)
    return np.asarray(np.where(count, np.where(finite, replies, 0).sum(1) / np.maximum(count, 1), np.nan))
