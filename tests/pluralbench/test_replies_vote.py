"""Votes of several replies to one question, against a second computation in plain Python."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean, pstdev
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench import find_benchmark
from pluralbench.data.decisions import JUDGED, decisions_of
from pluralbench.data.votes import REPLIES_COMPARED, REPLIES_SCORED, Votes
from pluralbench.errors import RunError
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.votes import vote_numbers

BASE = {"config": "c", "cluster": "q", "subset": None, "digest": "d", "truncated": False}
LETTERS = st.sampled_from(["A", "A", "A", "B", "B", "C", "invalid", "A 3", "A 1", "A 0", "B -2", "C 0"])
"""Verdicts, some with the difference of the scores in the reply; equal scores may have a verdict by a ranking."""


def letter_of(replies: Sequence[str], rule: str | None) -> tuple[str, bool]:
    """The vote of verdicts, and whether it is tied."""
    letters = [reply.split(" ")[0] for reply in replies]
    counts = Counter(letter for letter in letters if letter != "invalid")
    if not counts:
        return "invalid", False
    if rule == "mean":
        plain = {"A": 1, "B": -1, "C": 0, "invalid": 0}
        margins = [int(reply.split(" ")[-1]) if " " in reply else plain[reply] for reply in replies]
        return "A" if sum(margins) > 0 else "B" if sum(margins) < 0 else "C", not sum(margins) and any(margins)
    (letter, most), *others = counts.most_common()
    return ("C", True) if others and others[0][1] == most else (letter, False)


def compared(replies: Sequence[Sequence[Sequence[Sequence[str]]]]) -> Votes:
    """Replies by pair, order, judge and sample; a pair has one order or two, or none if its responses are equal."""
    items: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number, orders in enumerate(replies):
        names = {"chosen": "a", "rejected": "b"} if orders else {}
        item = {**BASE, "id": f"q{number}", "outcome": "tie" if orders else "equal"} | names
        items.append(item | {f"verdict_{side}_first": "C" for side, _ in zip(("chosen", "rejected"), orders)})  # noqa: B905
        for side, judges in zip(("chosen", "rejected"), orders):  # noqa: B905
            rows += [
                {"config": "c", "id": f"q{number}", **names, "first": side, "judge": f"j{judge}", "sample": sample}
                | {"verdict": letter.split(" ")[0], "margin": float(letter.split(" ")[-1]) if " " in letter else None}
                for judge, letters in enumerate(judges)
                for sample, letter in enumerate(letters)
            ]
    return Votes(pl.DataFrame(items, JUDGED), pl.DataFrame(rows, REPLIES_COMPARED))


@st.composite
def replies_to_pairs(draw: st.DrawFn) -> tuple[Any, list[int], list[int]]:
    judges, samples = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    one = st.lists(st.lists(LETTERS, min_size=samples, max_size=samples), min_size=judges, max_size=judges)
    pairs = draw(st.lists(st.lists(one, max_size=2), min_size=1, max_size=4).filter(any))
    places = [draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True)) for n in (judges, samples)]
    return pairs, places[0], places[1]


@settings(deadline=None)
@given(replies_to_pairs(), st.sampled_from([None, "majority", "mean"]))
def test_verdicts_vote_in_each_order(drawn: tuple[Any, list[int], list[int]], rule: Any) -> None:
    pairs, judges, samples = drawn
    votes = compared(pairs)
    tally = Votes(votes.items, votes.replies, rule).of(judges, samples)
    tied = 0
    for orders, row in zip(pairs, tally.items.iter_rows(named=True), strict=True):
        voted = [letter_of([order[judge][sample] for judge in judges for sample in samples], rule) for order in orders]
        tied += sum(is_tied for _, is_tied in voted)
        shown = [row[f"verdict_{side}_first"] for side in ("chosen", "rejected")]
        assert shown == [letter for letter, _ in voted] + [None] * (2 - len(voted))
        right = [letter == want for (letter, _), want in zip(voted, "AB", strict=False)]
        if not orders:
            assert row["outcome"] == "equal"
        elif "invalid" in shown:
            assert row["outcome"] == "invalid"
        else:
            assert (row["outcome"] == "win") == all(right)
    assert (tally.tied, tally.votes) == (tied, sum(len(orders) for orders in pairs))


def scored(lists: Sequence[Sequence[Sequence[float]]], *, picked: bool, rule: Any) -> Votes:
    """Scores by item, reply and response, all of one judge."""
    items = [
        {**BASE, "id": f"q{number}", "response": str(place), "rank": place, "score": 0.0, "outcome": "scored"}
        | {"position": place + 1 if picked else None}
        for number, replies in enumerate(lists)
        for place in range(len(replies[0]))
    ]
    rows = [
        {"config": "c", "id": f"q{number}", "response": str(place), "judge": "j", "sample": sample}
        | {"score": reply[place], "calls": []}
        for number, replies in enumerate(lists)
        for place in range(len(replies[0]))
        for sample, reply in enumerate(replies)
    ]
    frame = pl.DataFrame(items, schema_overrides={"position": pl.Int64})
    return Votes(frame, pl.DataFrame(rows, REPLIES_SCORED), rule)


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from([1.0, 7.0, 8.0, math.nan]), min_size=n, max_size=n), min_size=1)
    ),
    st.sampled_from([None, "mean", "majority"]),
)
def test_ratings_vote_by_their_mean_or_the_most_frequent(ratings: list[list[float]], rule: Any) -> None:
    tally = scored([[[value] for value in own] for own in ratings], picked=False, rule=rule).of(
        [0], [*range(len(ratings[0]))]
    )
    tied = 0
    for own, score, outcome in zip(ratings, tally.items["score"], tally.items["outcome"], strict=True):
        valid = [value for value in own if not math.isnan(value)]
        assert outcome == ("scored" if valid else "invalid")
        if rule == "majority":
            counts = Counter(valid)
            valid = [value for value, many in counts.items() if many == max(counts.values())]
            tied += len(valid) > 1
        if valid:
            assert score == pytest.approx(float(Fraction(sum(map(int, valid)), len(valid))), abs=1e-12)
    assert tally.tied == tied


@settings(deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.none() | st.integers(0, 2), min_size=n, max_size=n), min_size=1)
    ),
    st.sampled_from([None, "mean", "majority"]),
)
def test_picks_vote_for_one_response_or_share_it(picks: list[list[int | None]], rule: Any) -> None:
    lists = [
        [[math.nan] * 3 if pick is None else [float(place == pick) for place in range(3)] for pick in own]
        for own in picks
    ]
    votes = scored(lists, picked=True, rule=rule)
    tally = votes.of([0], [*range(len(picks[0]))])
    assert votes.invalid(0) == sum(pick is None for own in picks for pick in own)
    tied = 0
    for number, own in enumerate(picks):
        scores = tally.items["score"].to_list()[3 * number : 3 * number + 3]
        counts = Counter(pick for pick in own if pick is not None)
        if not counts:
            assert all(map(math.isnan, scores))
        elif rule == "mean":
            assert scores == pytest.approx([counts[place] / counts.total() for place in range(3)])
        else:
            best = [place for place in range(3) if counts[place] == max(counts.values())]
            assert scores == pytest.approx([(place in best) / len(best) for place in range(3)])
            tied += len(best) > 1
    assert tally.tied == (0 if rule == "mean" else tied)
    shares = []
    for own in picks:
        valid = [pick for pick in own if pick is not None]
        pairs = [(one, other) for at, one in enumerate(valid) for place, other in enumerate(valid) if at != place]
        shares += [sum(one == other for one, other in pairs) / len(pairs)] if pairs else []
    assert votes.agreement(0)[1].to_list() == pytest.approx(shares)


def test_replies_that_are_not_of_each_question_are_refused() -> None:
    whole = compared([[[["A", "B"]], [["A", "C"]]]])
    for replies in (whole.replies[:3], whole.replies[::-1], whole.replies.with_columns(id=pl.lit("q9"))):
        with pytest.raises(RunError, match="each judge and sample"):
            Votes(whole.items, replies)


def chance_of_majority(p: float, k: int) -> float:
    """The probability that more than half of k replies are right if each is with probability p."""
    return sum(math.comb(k, right) * p**right * (1 - p) ** (k - right) for right in range(k // 2 + 1, k + 1))


@pytest.mark.heavy
def test_intervals_of_votes_cover_and_all_subsets_vary_less_than_the_first_samples() -> None:
    rng, samples, pairs, runs = random.Random(2), 4, 30, 80
    benchmark, sizes = find_benchmark("pairs"), (1, 2, 4)
    chances = [rng.betavariate(2, 1) for _ in range(50_000)]
    truth = {k: fmean(chance_of_majority(chance, k) ** 2 for chance in chances) for k in sizes}
    covered, means, firsts = Counter[int](), defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    for _ in range(runs):
        drawn = [rng.choice(chances) for _ in range(pairs)]
        right = [[[rng.random() < chance for _ in range(samples)] for _ in "AB"] for chance in drawn]
        votes = compared(
            [
                [[["AB"[one == (better == "B")] for one in own]] for own, better in zip(orders, "AB", strict=True)]
                for orders in right
            ]
        )
        clusters = votes.items.with_columns(cluster="id")
        votes = Votes(clusters, votes.replies)
        decided = Decided(benchmark, decisions_of(votes.of([0], range(samples)).items), votes=votes)
        for key, estimate in vote_numbers(decided):
            if key.metric == "accuracy_of_votes" and key.k is not None:
                assert estimate.value is not None
                covered[key.k] += (estimate.low or 0) <= truth[key.k] <= (estimate.high or 1)
                means[key.k].append(estimate.value)
        for k in sizes:
            firsts[k].append(fmean(all(2 * sum(own[:k]) > k for own in orders) for orders in right))
    for k in sizes:
        assert covered[k] >= 0.9 * runs
        assert fmean(means[k]) == pytest.approx(truth[k], abs=4 * pstdev(means[k]) / runs**0.5)
    assert means[4] == pytest.approx(firsts[4])
    assert pstdev(means[1]) < 0.85 * pstdev(firsts[1])
