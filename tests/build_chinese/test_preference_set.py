"""The preference set: whatever the votes, no cycle, no conflict, lengths in balance, and every vote accounted for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

import networkx as nx
import polars as pl
import pytest
from build_chinese.errors import TrainingDataError
from build_chinese.preference_set import (
    DISAGREES,
    EQUAL,
    IN_A_CYCLE,
    LENGTHS,
    LONGER,
    MARGIN,
    NO_PAIR,
    NO_PAIR_AFTER,
    NO_VOTE,
    PAIRS,
    TIE,
    TOO_LONG,
    PreferenceSet,
    balance_lengths,
    build_preference_set,
)
from build_chinese.rankings import ALL_EQUAL, ONE_RESPONSE, Row, preferred_pairs
from build_chinese.recipe import PreferenceTable
from build_chinese.reward_model import REWARDS
from build_chinese.votes import VOTES
from hypothesis import given
from hypothesis import strategies as st

Vote = tuple[str, str, str, str | None]
PLAIN = PreferenceTable(distant=False, length=False)
BY_REWARD = PreferenceTable(length=False)
FIRST, AGREES, RANKS, BALANCED = (
    "votes that prefer one",
    "the reward model agrees",
    "kept by the ranks",
    "balanced in length",
)


@dataclass(frozen=True)
class Case:
    """Prompts, votes on each two of their responses, and a reward for each, None where it is too long for one."""

    rows: list[Row]
    votes: list[Vote]
    rewards: dict[tuple[str, str], float | None]

    def made(
        self, strategies: PreferenceTable = BY_REWARD, margin: float = 0.0, seed: int = 1, draw: Random | None = None
    ) -> PreferenceSet:
        """What becomes of it; draw: mix votes, rewards and prompts first."""
        rows, votes, rewards = self.rows, self.votes, list(self.rewards.items())
        if draw is not None:
            rows, votes, rewards = draw.sample(rows, len(rows)), draw.sample(votes, len(votes)), rewards[::-1]
        cast = pl.DataFrame(
            [(*vote, None if vote[3] else "no verdict", "0" * 64) for vote in votes], schema=VOTES, orient="row"
        )
        scored = pl.DataFrame([(*place, value, 0, "1" * 64) for place, value in rewards], schema=REWARDS, orient="row")
        by = scored if strategies.distant else None
        return build_preference_set(rows, cast, by, strategies, margin=margin, seed=seed)


REWARD = st.integers(-3, 3).map(float) | st.floats(-1e300, 1e300) | st.none()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows: list[Row] = []
    votes: list[Vote] = []
    for number, count in enumerate(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))):
        names = [f"r{place}" for place in range(count)]  # the same ids in each prompt, and they are other responses
        texts = [("好" * draw(st.integers(0, 3))) for _ in names]
        responses = [{"id": name, "content": text} for name, text in zip(names, texts, strict=True)]
        rows.append({"id": f"p{number}", "input": f"问{number}", "responses": responses, "category": ["地理"]})
        for pair in combinations(names, 2):
            first, second = draw(st.permutations(pair))
            votes.append((f"p{number}", first, second, draw(st.sampled_from(["1", "1", "2", "2", "s", None]))))
    places = [(row["id"], response["id"]) for row in rows for response in row["responses"]]
    return Case(rows, votes, {place: draw(REWARD) for place in places})


STRATEGIES = st.builds(PreferenceTable, distant=st.booleans(), length=st.booleans())
MARGINS = st.sampled_from([0.0, 0.5, 1.0, 2.5])
SEEDS = st.integers(0, 2**31)


def strict(case: Case) -> list[tuple[str, str, str]]:
    """(prompt, better, worse) of each vote that prefers one."""
    return [
        (prompt, a, b) if mark == "1" else (prompt, b, a) for prompt, a, b, mark in case.votes if mark in {"1", "2"}
    ]


def kept(made: PreferenceSet) -> list[tuple[str, str, str]]:
    return [(row["id"], *pair) for row in made.rows for pair in preferred_pairs(row)]


def length(case: Case, prompt: str, name: str) -> int:
    [row] = [row for row in case.rows if row["id"] == prompt]
    return next(len(response["content"]) for response in row["responses"] if response["id"] == name)


def sides(case: Case, pairs: Sequence[tuple[str, str, str]]) -> tuple[int, int]:
    """How many have the longer one as the better, and how many the shorter."""
    found = [length(case, prompt, better) - length(case, prompt, worse) for prompt, better, worse in pairs]
    return sum(value > 0 for value in found), sum(value < 0 for value in found)


@given(cases(), STRATEGIES, MARGINS, SEEDS)
def test_what_is_kept_has_no_cycle_and_keeps_to_the_ranks(
    case: Case, strategies: PreferenceTable, margin: float, seed: int
) -> None:
    made = case.made(strategies, margin, seed)
    for row in made.rows:
        own = preferred_pairs(row)
        assert nx.is_directed_acyclic_graph(nx.DiGraph(own))
        assert own
        assert all(row["rank"][better] < row["rank"][worse] for better, worse in own)
        assert {tuple(pair) for pair in own} <= {tuple(pair) for pair in row["order"]}
        assert all(mark == "1" for *_, mark in row["annotations"])
    assert set(kept(made)) <= set(strict(case))
    assert len(kept(made)) == len(set(kept(made)))


@given(cases(), STRATEGIES, MARGINS, SEEDS)
def test_every_vote_and_every_prompt_is_accounted_for(
    case: Case, strategies: PreferenceTable, margin: float, seed: int
) -> None:
    made = case.made(strategies, margin, seed)
    assert len(kept(made)) + sum(made.votes.values()) == len(case.votes)
    assert all(count >= 0 for count in made.votes.values())
    assert made.votes[NO_VOTE] == sum(vote[3] is None for vote in case.votes)
    assert made.votes[TIE] == sum(vote[3] == "s" for vote in case.votes)
    by = {DISAGREES, EQUAL, MARGIN, TOO_LONG} if strategies.distant else {IN_A_CYCLE}
    assert made.votes.keys() == {NO_VOTE, TIE} | by | ({LONGER} if strategies.length else set())
    inputs = [row["input"] for row in case.rows]
    assert sorted([row["input"] for row in made.rows] + made.dropped["input"].to_list()) == sorted(inputs)
    assert set(made.dropped["reason"]) <= {ONE_RESPONSE, NO_PAIR, ALL_EQUAL, NO_PAIR_AFTER}
    assert ONE_RESPONSE not in set(made.dropped.filter(pl.col("responses") > 1)["reason"])
    assert list(made.steps) == [FIRST, AGREES if strategies.distant else RANKS, *[BALANCED] * strategies.length]
    counts = list(made.steps.values())
    assert (counts[0], counts[-1]) == (len(strict(case)), len(kept(made)))
    assert counts == sorted(counts, reverse=True)


@given(cases(), st.booleans(), MARGINS, SEEDS)
def test_the_better_one_is_as_often_the_longer_as_the_shorter(
    case: Case, distant: bool, margin: float, seed: int
) -> None:
    balanced = case.made(PreferenceTable(distant=distant), margin, seed)
    longer, shorter = sides(case, kept(balanced))
    assert longer == shorter
    before = kept(case.made(PreferenceTable(distant=distant, length=False), margin, seed))
    assert longer == min(sides(case, before))
    assert len(kept(balanced)) == len(before) - abs(sides(case, before)[0] - sides(case, before)[1])
    assert set(kept(balanced)) <= set(before)


@given(cases(), MARGINS)
def test_a_vote_stays_where_the_rewards_agree_by_more_than_the_margin(case: Case, margin: float) -> None:
    made = case.made(margin=margin)
    differences: dict[tuple[str, str, str], float] = {}
    for prompt, better, worse in strict(case):
        high, low = case.rewards[prompt, better], case.rewards[prompt, worse]
        if high is not None and low is not None:
            differences[prompt, better, worse] = high - low
    assert set(kept(made)) == {pair for pair, difference in differences.items() if difference > margin}
    assert made.votes[TOO_LONG] == len(strict(case)) - len(differences)
    assert made.votes[DISAGREES] == sum(difference < 0 for difference in differences.values())
    assert made.votes[EQUAL] == sum(difference == 0 for difference in differences.values())
    assert made.votes[MARGIN] == sum(0 < difference <= margin for difference in differences.values())
    assert ALL_EQUAL not in set(made.dropped["reason"])


@given(cases())
def test_without_distant_supervision_cycles_are_resolved(case: Case) -> None:
    """Of two responses that lead to each other, by votes or by ties, the votes between them go; all others stay."""
    made = case.made(PLAIN)
    stay = set()
    for row in case.rows:
        graph = nx.DiGraph()
        for prompt, first, second, mark in case.votes:
            if prompt == row["id"] and mark is not None:
                graph.add_edges_from([(first, second)] * (mark != "2") + [(second, first)] * (mark != "1"))
        votes = [(prompt, better, worse) for prompt, better, worse in strict(case) if prompt == row["id"]]
        stay |= {pair for pair in votes if not nx.has_path(graph, pair[2], pair[1])}
    assert set(kept(made)) == stay
    assert made.votes[IN_A_CYCLE] == len(strict(case)) - len(stay)


def ring(length_of: str, marks: Sequence[str]) -> Case:
    """A prompt of three responses with these lengths and votes on r0 and r1, r1 and r2, r0 and r2; rewards fall."""
    responses = [{"id": f"r{place}", "content": "好" * int(size)} for place, size in enumerate(length_of)]
    row: Row = {"id": "p", "input": "问", "responses": responses, "category": ["地理"]}
    pairs = [("r0", "r1"), ("r1", "r2"), ("r0", "r2")]
    votes: list[Vote] = [("p", *pair, mark) for pair, mark in zip(pairs, marks, strict=True)]
    return Case([row], votes, {("p", f"r{place}"): -float(place) for place in range(3)})


def test_a_cycle_is_cut_by_the_reward_model_and_merged_without() -> None:
    cycle = ring("111", "112")
    with_rewards, without = cycle.made(), cycle.made(PLAIN)
    assert kept(with_rewards) == [("p", "r0", "r1"), ("p", "r1", "r2")]
    assert with_rewards.rows[0]["rank"] == {"r0": 1, "r1": 2, "r2": 3}
    assert with_rewards.votes == {NO_VOTE: 0, TIE: 0, DISAGREES: 1, EQUAL: 0, MARGIN: 0, TOO_LONG: 0}
    assert kept(without) == []
    assert without.votes[IN_A_CYCLE] == 3
    assert without.dropped.rows() == [("问", ALL_EQUAL, 3, 3)]


def test_a_prompt_that_loses_all_its_pairs_to_balance_is_dropped_and_counted() -> None:
    made = ring("321", "111").made(PreferenceTable())
    assert made.rows == []
    assert made.votes[LONGER] == 3
    assert made.dropped.rows() == [("问", NO_PAIR_AFTER, 3, 3)]
    assert made.steps == {FIRST: 3, AGREES: 3, BALANCED: 0}


@pytest.mark.heavy
@given(cases(), STRATEGIES, MARGINS, SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_prompts_votes_and_rewards_changes_nothing(
    case: Case, strategies: PreferenceTable, margin: float, seed: int, draw: Random
) -> None:
    one, other = case.made(strategies, margin, seed), case.made(strategies, margin, seed, draw)
    assert set(kept(one)) == set(kept(other))
    assert (one.votes, one.steps) == (other.votes, other.steps)
    assert sorted(one.dropped.rows()) == sorted(other.dropped.rows())
    ranks: list[dict[str, Any]] = [{row["id"]: row["rank"] for row in made.rows} for made in (one, other)]
    assert ranks[0] == ranks[1]


def test_what_is_dropped_for_length_stays_in_the_ranks_and_the_judgements() -> None:
    made = ring("213", "111").made(PreferenceTable())  # longer: r0 > r1; shorter: r1 > r2, r0 > r2
    [row] = made.rows
    assert len(row["annotations"]) == 2
    assert row["rank"] == {"r0": 1, "r1": 2, "r2": 3}
    assert sum(row["counts"]["judgements"].values()) == 3


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused(reward: float) -> None:
    case = ring("111", "111")
    case.rewards["p", "r1"] = reward
    with pytest.raises(TrainingDataError, match="1 of 3 rewards are not finite, first r1 of the prompt p; "):
        case.made()


def test_the_draw_is_over_all_prompts_and_by_the_seed() -> None:
    rows = [(f"p{number}", "a", "b") for number in range(100)] + [("p0", "c", "b")]
    pairs = pl.DataFrame(rows, schema=PAIRS, orient="row")
    sizes = {(row[0], name, size) for row in rows for name, size in (("a", 2), ("b", 1), ("c", 0))}
    lengths = pl.DataFrame(sorted(sizes), schema=LENGTHS, orient="row")
    drawn = {seed: tuple(balance_lengths(pairs, lengths, seed).rows()) for seed in range(40)}
    assert all(len(left) == 2 and left[-1] == ("p0", "c", "b") for left in drawn.values())
    assert len(set(drawn.values())) > 20  # of one prompt each, and not always the same
    assert drawn[3] == tuple(balance_lengths(pairs, lengths, 3).rows())
