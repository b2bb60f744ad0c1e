"""Votes of several replies: accuracy and cost by the number of samples, each judge's part in a panel, and agreement.

An accuracy with k of K samples is the mean over subsets of k samples: over all of them if there are at most `MOST`,
else over drawn ones. It has the expectation of the accuracy with the first k samples, and a smaller variance, since it
uses all replies. All judges of a panel and both orders of a pair use the same subset. With k = K it is the accuracy of
the run.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.decisions import decisions_of
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.votes import Votes
from pluralbench.metrics.accuracy import count_tables, item_mean, linearize_counts, resampled_accuracies, tables_of
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

MOST = 128
"""Maximum number of subsets of samples behind an accuracy."""
LEAST_FOR_OTHERS = 3
"""Smallest panel with accuracies without one judge; of two judges, the other one remains."""


def vote_numbers(decided: Decided) -> Numbers:
    """Yield the accuracy of votes by number of samples and by judge, and the agreement of a judge with itself."""
    votes = decided.votes
    if votes is None:
        return
    judges = range(len(votes.judges))
    for k in sizes(votes.samples):
        accuracy, tied = _accuracy(decided, votes, judges, k)
        yield MetricKey("accuracy_of_votes", k=k), accuracy
        yield MetricKey("share_of_tied_votes", k=k), tied
        for place in judges if len(judges) > 1 else ():
            key = MetricKey("accuracy_of_votes", judge=votes.judges[place], k=k)
            yield key, _accuracy(decided, votes, [place], k)[0]
    for place in judges if len(judges) >= LEAST_FOR_OTHERS else ():
        others = [other for other in judges if other != place]
        accuracy, _ = _accuracy(decided, votes, others, votes.samples)
        yield MetricKey("accuracy_without_judge", judge=votes.judges[place]), accuracy
    yield MetricKey("tied_votes"), Estimate(float(votes.of(judges, range(votes.samples)).tied))
    for place, name in enumerate(votes.judges):
        yield MetricKey("invalid_replies", judge=name), Estimate(float(votes.invalid(place)))
        rows, shares = votes.agreement(place)
        if rows.height:
            yield MetricKey("agreement_within_judge", judge=name), item_mean(rows, shares)


def sizes(samples: int) -> list[int]:
    """Return the numbers of samples that votes are computed for: the powers of 2 up to all of them, and all."""
    return sorted({*(2**power for power in range(samples.bit_length())), samples})


def subsets(samples: int, k: int) -> list[tuple[int, ...]]:
    """Return all subsets of k samples, or `MOST` drawn ones, each sample about equally often."""
    if comb(samples, k) <= MOST:
        return [*combinations(range(samples), k)]
    rng, drawn = np.random.default_rng([samples, k]), list[tuple[int, ...]]()
    while len(drawn) < MOST:
        order = rng.permutation(samples)
        drawn += [tuple(sorted(map(int, order[start : start + k]))) for start in range(0, samples - k + 1, k)]
    return drawn[:MOST]


def _accuracy(decided: Decided, votes: Votes, judges: Sequence[int], k: int) -> tuple[Estimate, Estimate]:
    benchmark, cells = decided.benchmark, decided.cells
    counted, tied = [], []
    for samples in subsets(votes.samples, k):
        tally = votes.of(judges, samples)
        counted.append(tables_of(Decided(benchmark, decisions_of(tally.items))))
        tied.append(tally.tied / max(tally.votes, 1))
    means = {name: _mean([tables[name] for tables in counted]) for name in counted[0]}
    linearized, (source,) = linearize_counts(count_tables(means, cells))
    overall = resampled_accuracies(benchmark, cells, source)[0]
    return overall.estimate(linearized, benchmark), Estimate(float(np.mean(tied)), n=tally.votes)


def _mean(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    won = np.mean([frame["won"].to_numpy() for frame in frames], axis=0)
    return frames[0].with_columns(won=pl.Series(won, dtype=pl.Float64))


def token_numbers(votes: Votes, ledger: pl.DataFrame) -> Numbers:
    """Yield the expected number of tokens of votes by number of samples and by judge.

    A call that several samples share, such as that of a rubric, counts once.
    """
    tokens = dict(ledger.select("key", pl.col("prompt_tokens") + pl.col("completion_tokens")).iter_rows())
    calls = votes.replies.select("judge", "sample", key="calls").explode("key").drop_nulls()
    several = [name for name in votes.judges if len(votes.judges) > 1]
    users = {
        judge: (calls if judge is None else calls.filter(judge=judge)).group_by("key").agg(pl.col("sample").n_unique())
        for judge in (None, *several)
    }
    for k in sizes(votes.samples):
        for judge, own in users.items():
            expected = sum(tokens[key] * _used(used, k, votes.samples) for key, used in own.sort("key").iter_rows())
            yield MetricKey("tokens_of_votes", judge=judge, k=k), Estimate(float(expected))


def _used(used: int, k: int, samples: int) -> float:
    """Return the probability that k of the samples contain one of `used` samples."""
    return 1 - comb(samples - used, k) / comb(samples, k)


METRICS = (
    *computed_by(
        vote_numbers,
        Metric(
            "accuracy_of_votes",
            "share",
            "The overall number if k samples of each judge, or of one judge, vote: the mean over subsets of k samples.",
            ("k", "judge k"),
        ),
        Metric("accuracy_without_judge", "share", "The overall number of a panel without the judge.", ("judge",)),
        Metric("tied_votes", "count", "Votes of all samples and judges without a most frequent verdict."),
        Metric("share_of_tied_votes", "share", "Share of such votes if k samples of each judge vote.", ("k",)),
        Metric("invalid_replies", "count", "Replies of a judge that cannot be read, which do not vote.", ("judge",)),
        Metric(
            "agreement_within_judge",
            "share",
            "Share of pairs of a judge's replies to one question that are the same.",
            ("judge",),
        ),
    ),
    Metric(
        "tokens_of_votes", "number", "Expected tokens of k samples of each judge, or of one judge.", ("k", "judge k")
    ),
)
