"""Votes that a reward model agrees with, and pairs balanced in length."""

import math
from itertools import combinations
from random import Random

import polars as pl
import pytest
from build_chinese.errors import TrainingDataError
from build_chinese.preferences import MARKS, resolve
from build_chinese.supervision import (
    DISAGREES,
    EQUAL,
    LONGER,
    MARGIN,
    NO_VOTE,
    PAIRS,
    TIE,
    TOO_LONG,
    Filtered,
    agreed,
    debiased,
    is_acyclic,
    preferences_of,
)
from build_chinese.votes import VOTES
from hypothesis import given
from hypothesis import strategies as st

PROMPTS, RESPONSES = "pq", "abcde"
Pair = tuple[str, str, str]
Values = dict[tuple[str, str], float]

PLACES = [(prompt, response) for prompt in PROMPTS for response in RESPONSES]
ALL_PAIRS: list[Pair] = [(prompt, a, b) for prompt in PROMPTS for a in RESPONSES for b in RESPONSES if a != b]
SOME_PAIRS = st.lists(st.sampled_from(ALL_PAIRS), unique=True)
REWARDS: st.SearchStrategy[Values] = st.fixed_dictionaries(
    dict.fromkeys(PLACES, st.integers(-4, 4).map(float) | st.floats(-1e300, 1e300))
)
LENGTHS: st.SearchStrategy[Values] = st.fixed_dictionaries(dict.fromkeys(PLACES, st.integers(0, 4)))
SEEDS = st.integers(-(2**53) + 1, 2**53 - 1)  # as far as JSON carries whole numbers


def pairs_of(rows: list[Pair]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def by_response(name: str, values: Values, kind: type[pl.DataType] = pl.Float64) -> pl.DataFrame:
    rows = [(*place, value) for place, value in values.items()]
    return pl.DataFrame(rows, schema={"prompt": pl.String, "response": pl.String, name: kind}, orient="row")


def kept(pairs: list[Pair], rewards: Values, margin: float = 0.0) -> Filtered:
    return agreed(pairs_of(pairs), by_response("reward", rewards), margin)


def balanced(pairs: list[Pair], lengths: Values, seed: int = 1) -> Filtered:
    return debiased(pairs_of(pairs), by_response("length", lengths, pl.Int64), seed)


def test_votes_become_pairs() -> None:
    marks = ["1", "2", "s", None, "2", None]
    votes = pl.DataFrame(
        {
            "prompt": list("pppqqq"),
            "first": list("aababa"),
            "second": list("bccbcc"),
            "mark": marks,
            "reason": [None if mark else "not a verdict" for mark in marks],
            "call": list("uvwxyz"),
        },
        schema=VOTES,
    )
    found = preferences_of(votes)
    assert found.pairs.schema == PAIRS
    assert found.pairs.rows() == [("p", "a", "b"), ("p", "c", "a"), ("q", "c", "b")]
    assert found.dropped == {NO_VOTE: 2, TIE: 1}
    assert preferences_of(votes.clear()).pairs.rows() == []


@given(SOME_PAIRS, REWARDS, st.sampled_from([0.0, 0.5, 3.0]))
def test_a_vote_stays_where_the_reward_is_higher_by_more_than_the_margin(
    pairs: list[Pair], rewards: Values, margin: float
) -> None:
    found = kept(pairs, rewards, margin)
    differences = [rewards[prompt, better] - rewards[prompt, worse] for prompt, better, worse in pairs]
    stay = [pair for pair, difference in zip(pairs, differences, strict=True) if difference > margin]
    assert found.pairs.rows() == stay
    assert found.pairs.schema == PAIRS
    assert found.dropped == {
        DISAGREES: sum(difference < 0 for difference in differences),
        EQUAL: sum(difference == 0 for difference in differences),
        MARGIN: sum(0 < difference <= margin for difference in differences),
        TOO_LONG: 0,
    }


@given(SOME_PAIRS, REWARDS)
def test_what_stays_has_no_cycle_and_no_conflict(pairs: list[Pair], rewards: Values) -> None:
    found = kept(pairs, rewards).pairs
    assert is_acyclic(found)
    for prompt in PROMPTS:
        resolved = resolve([(better, worse, MARKS[0]) for _, better, worse in found.filter(prompt=prompt).rows()])
        assert resolved.conflicts == 0
        assert all(rewards[prompt, better] > rewards[prompt, worse] for better, worse in resolved.order)


@given(SOME_PAIRS, REWARDS, st.floats(0, 10), st.floats(0, 10))
def test_a_larger_margin_keeps_no_more(pairs: list[Pair], rewards: Values, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert set(kept(pairs, rewards, high).pairs.rows()) <= set(kept(pairs, rewards, low).pairs.rows())


@given(st.permutations(ALL_PAIRS), REWARDS)
def test_without_a_margin_one_vote_of_the_two_ways_stays(pairs: list[Pair], rewards: Values) -> None:
    found = set(kept(pairs, rewards).pairs.rows())
    for prompt, a, b in [(prompt, a, b) for prompt in PROMPTS for a, b in combinations(RESPONSES, 2)]:
        differ = rewards[prompt, a] != rewards[prompt, b]
        assert ((prompt, a, b) in found) + ((prompt, b, a) in found) == differ


@given(SOME_PAIRS, REWARDS, st.randoms(use_true_random=False))
def test_the_order_of_votes_and_rewards_does_not_matter(pairs: list[Pair], rewards: Values, draw: Random) -> None:
    found = kept(pairs, rewards)
    shuffled = kept(draw.sample(pairs, len(pairs)), dict(draw.sample(list(rewards.items()), len(rewards))))
    assert set(shuffled.pairs.rows()) == set(found.pairs.rows())
    assert shuffled.dropped == found.dropped


def test_two_rewards_of_one_response_are_a_mistake() -> None:
    rewards = by_response("reward", dict.fromkeys(PLACES, 1.0))
    with pytest.raises(pl.exceptions.ComputeError, match="join keys did not fulfill m:1 validation"):
        agreed(pairs_of([("p", "a", "b")]), pl.concat([rewards, rewards]), 0.0)


def test_a_response_without_a_reward_takes_its_pairs_along() -> None:
    rewards: dict[tuple[str, str], float | None] = dict(zip(PLACES, range(len(PLACES), 0, -1), strict=True))
    (prompt, first), (_, second), (_, third) = PLACES[:3]
    rewards[prompt, second] = None
    frame = pl.DataFrame(
        [(*place, value) for place, value in rewards.items()],
        schema={"prompt": pl.String, "response": pl.String, "reward": pl.Float64},
        orient="row",
    )
    pairs = pl.DataFrame([(prompt, first, second), (prompt, first, third)], schema=PAIRS, orient="row")
    found = agreed(pairs, frame, 0.0)
    assert found.pairs.rows() == [(prompt, first, third)]
    assert found.dropped == {DISAGREES: 0, EQUAL: 0, MARGIN: 0, TOO_LONG: 1}


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused(reward: float) -> None:
    rewards = dict.fromkeys(PLACES, 1.0) | {PLACES[3]: reward}
    prompt, response = PLACES[3]
    said = f"gave no number for 1 of {len(PLACES)} responses, the first {response} of the prompt {prompt}; train it at"
    with pytest.raises(TrainingDataError, match=said):
        kept([("p", "a", "b"), ("p", "b", "c")], rewards)


@given(SOME_PAIRS, LENGTHS, SEEDS)
def test_as_many_longer_as_shorter(pairs: list[Pair], lengths: Values, seed: int) -> None:
    found = balanced(pairs, lengths, seed)
    groups: dict[int, list[Pair]] = {-1: [], 0: [], 1: []}
    for pair in pairs:
        difference = lengths[pair[0], pair[1]] - lengths[pair[0], pair[2]]
        groups[(difference > 0) - (difference < 0)].append(pair)
    left = found.pairs.rows()
    assert left == [pair for pair in pairs if pair in set(left)]  # the others, in their order
    small, large = sorted((groups[-1], groups[1]), key=len)
    assert {*small, *groups[0]} <= set(left)
    assert len(set(left) & set(large)) == len(small)
    assert found.dropped == {LONGER: len(large) - len(small)}


@given(SOME_PAIRS, LENGTHS, SEEDS, st.randoms(use_true_random=False))
def test_the_draw_does_not_depend_on_the_order_of_rows(
    pairs: list[Pair], lengths: Values, seed: int, draw: Random
) -> None:
    shuffled = draw.sample(pairs, len(pairs)), dict(draw.sample(list(lengths.items()), len(lengths)))
    assert set(balanced(pairs, lengths, seed).pairs.rows()) == set(balanced(*shuffled, seed).pairs.rows())


@given(SOME_PAIRS, LENGTHS)
def test_what_is_balanced_stays_as_it_is(pairs: list[Pair], lengths: Values) -> None:
    once = balanced(pairs, lengths)
    again = balanced(once.pairs.rows(), lengths, seed=2)
    assert again.pairs.equals(once.pairs)
    assert again.dropped == {LONGER: 0}


def test_the_draw_is_over_all_prompts_and_by_the_seed() -> None:
    pairs = [(f"p{number}", "a", "b") for number in range(100)] + [("p0", "c", "b")]
    lengths: Values = {(pair[0], name): length for pair in pairs for name, length in (("a", 2), ("b", 1), ("c", 0))}
    drawn = {seed: tuple(balanced(pairs, lengths, seed).pairs.rows()) for seed in range(40)}
    assert all(len(left) == 2 and left[-1] == ("p0", "c", "b") for left in drawn.values())
    assert len(set(drawn.values())) > 20  # of one prompt each, and not always the same
    assert drawn[3] == tuple(balanced(pairs, lengths, 3).pairs.rows())
