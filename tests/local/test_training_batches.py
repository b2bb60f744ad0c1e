"""Batches of responses: none comes twice, pairs are all there are, and what is lost is counted."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_local import Ranking, TrainingError
from pluralbench_local.conversations import Template
from pluralbench_local.training_batches import Batch, Data, batches, check, tokenize_rankings
from pluralbench_measures.rankings import pairs_of
from reward_models import make_tokenizer, user

RANKS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), max_size=12)
SIZES = st.integers(2, 12)


def rankings_of(ranks: list[list[int]]) -> "list[Ranking]":
    return [
        Ranking(f"q{number}", user("hi"), [f"text {place}" for place in range(len(rank))], rank)
        for number, rank in enumerate(ranks)
    ]


@st.composite
def some_pairs(draw: st.DrawFn) -> "list[Ranking]":
    """Rankings of which only some pairs are to be learned from."""
    ranks = draw(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=7), min_size=1, max_size=6))
    made = []
    for ranking in rankings_of(ranks):
        pairs = pairs_of(ranking.rank)
        made.append(replace(ranking, pairs=draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []))
    return made


def members_of(made: "list[Batch]") -> list[tuple[int, int]]:
    return [member for batch in made for member in batch.members]


def spent(ranks: list[list[int]], size: int, epoch: int = 0) -> dict[str, int]:
    rankings = rankings_of(ranks)
    return Data(rankings, [], 0, 0).epoch_counts(batches(rankings, size, seed=0, epoch=epoch))


@given(RANKS, SIZES, st.integers(0, 3), st.integers(0, 3))
def test_no_response_is_in_two_batches_and_none_is_too_large(
    ranks: list[list[int]], size: int, seed: int, epoch: int
) -> None:
    made = batches(rankings_of(ranks), size, seed, epoch)
    assert len(set(members_of(made))) == len(members_of(made))
    assert all(2 <= len(batch.members) <= size for batch in made)


@given(RANKS, SIZES, st.integers(0, 3))
def test_the_pairs_are_all_of_one_ranking_that_are_together_and_each_batch_has_one(
    ranks: list[list[int]], size: int, seed: int
) -> None:
    for batch in batches(rankings_of(ranks), size, seed, epoch=0):
        expected = set()
        for (a, (ranking, one)), (b, (other, two)) in combinations(enumerate(batch.members), 2):
            if ranking == other and ranks[ranking][one] != ranks[ranking][two]:
                expected.add((a, b) if ranks[ranking][one] < ranks[ranking][two] else (b, a))
        assert set(batch.pairs) == expected
        assert len(batch.pairs) == len(expected) > 0


@given(some_pairs(), st.integers(0, 2))
def test_a_batch_has_the_pairs_that_were_given_and_no_other(made: "list[Ranking]", epoch: int) -> None:
    learned = []
    for batch in batches(made, 8, seed=0, epoch=epoch):
        for better, worse in batch.pairs:
            (ranking, one), (other, two) = batch.members[better], batch.members[worse]
            assert ranking == other
            learned.append((ranking, (one, two)))
    expected = [(number, pair) for number, ranking in enumerate(made) for pair in ranking.pairs or ()]
    assert sorted(learned) == sorted(expected)


@given(RANKS, SIZES, st.integers(0, 3))
def test_a_ranking_that_fits_into_a_batch_loses_nothing(ranks: list[list[int]], size: int, epoch: int) -> None:
    made = batches(rankings_of(ranks), size, seed=0, epoch=epoch)
    for number, rank in enumerate(ranks):
        if len(rank) <= size:
            homes = {
                place for place, batch in enumerate(made) if any(ranking == number for ranking, _ in batch.members)
            }
            assert len(homes) == (len(set(rank)) > 1)
            assert sum(ranking == number for ranking, _ in members_of(made)) == (len(rank) if homes else 0)


@given(RANKS, SIZES)
def test_what_an_epoch_uses_and_loses_adds_up(ranks: list[list[int]], size: int) -> None:
    rankings = rankings_of(ranks)
    data, made = Data(rankings, [], 0, 0), batches(rankings, size, seed=0, epoch=0)
    counted = data.epoch_counts(made)
    assert counted["pairs"] + counted["pairs_lost"] == sum(len(pairs_of(rank)) for rank in ranks)
    assert counted["responses"] + counted["responses_left_out"] == sum(map(len, ranks))
    assert counted["batches"] == len(made)
    assert counted["fillers"] <= counted["responses"] - 2 * len(made)
    if all(len(rank) <= size for rank in ranks):
        assert counted["pairs_lost"] == counted["fillers"] == 0


@given(RANKS, SIZES, st.integers(0, 3), st.integers(0, 3))
def test_the_same_seed_and_epoch_give_the_same_batches_whatever_the_order(
    ranks: list[list[int]], size: int, seed: int, epoch: int
) -> None:
    def by_id(rankings: "list[Ranking]") -> list[list[tuple[str, int]]]:
        made = batches(rankings, size, seed, epoch)
        return [[(rankings[ranking].id, response) for ranking, response in batch.members] for batch in made]

    rankings = rankings_of(ranks)
    assert by_id(rankings) == by_id(rankings) == by_id(rankings[::-1])


def test_another_seed_or_epoch_gives_others() -> None:
    rankings = rankings_of([[0, 1, 2]] * 20)
    made = [batches(rankings, 8, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({json.dumps([batch.members for batch in several]) for several in made}) == 4


@pytest.mark.parametrize(
    ("ranks", "size", "pairs", "lost", "fillers", "left_out"),
    [
        (list(range(10)), 4, 6 + 6 + 1, 45 - 13, 0, 0),
        (list(range(9)), 4, 6 + 6, 36 - 12, 0, 1),  # 4, 4 and one for which no batch has room
        ([0] * 5 + [1] * 5, 4, 4 + 4 + 1, 25 - 9, 0, 0),  # ties are spread, so that parts have pairs
        ([0] * 7 + [1], 3, 2, 5, 0, 5),
        ([0, 0, 0, 0], 3, 0, 0, 0, 4),
        ([0, 0, 1], 3, 2, 0, 0, 0),
    ],
)
def test_a_ranking_that_is_split_keeps_as_many_pairs_as_its_parts_can_have(
    ranks: list[int], size: int, pairs: int, lost: int, fillers: int, left_out: int
) -> None:
    for epoch in range(5):
        counted = spent([ranks], size, epoch)
        assert (counted["pairs"], counted["pairs_lost"]) == (pairs, lost)
        assert (counted["fillers"], counted["responses_left_out"]) == (fillers, left_out)


def test_a_response_that_lost_its_pairs_fills_a_batch_with_room_and_another_epoch_takes_another() -> None:
    rankings = rankings_of([list(range(9)), [0, 1]])
    fillers = set()
    for epoch in range(8):
        made = batches(rankings, 4, seed=0, epoch=epoch)
        counted = Data(rankings, [], 0, 0).epoch_counts(made)
        assert (counted["fillers"], counted["responses_left_out"], counted["batches"]) == (1, 0, 3)
        [alone] = [
            batch.members[place]
            for batch in made
            for place in set(range(len(batch.members))) - {place for pair in batch.pairs for place in pair}
        ]
        fillers.add(alone)
    assert {ranking for ranking, _ in fillers} == {0}
    assert len(fillers) > 2


HI = user("hi")


REFUSED: list[tuple[list[Ranking], str]] = [
    ([], "None of the 0 rankings has two responses of different rank, so there is no pair."),
    (
        [Ranking("a", HI, ["x", "y"], [1, 1]), Ranking("b", HI, ["x"], [1])],
        "None of the 2 rankings has two responses of different rank, so there is no pair.",
    ),
    (
        [Ranking("a", HI, ["x", "y"], [1, 2]), Ranking("a", HI, ["x", "y"], [1, 2])],
        "Two rankings have the id a; give each an id of its own.",
    ),
    (
        [Ranking("茶", HI, ["x", "y"], [1])],
        "The ranking 茶 has 2 responses and 1 ranks; give each response a rank.",
    ),
    ([Ranking("a", HI, ["x", " \n"], [1, 2])], "Response 2 of the ranking a is empty; leave it out."),
    (
        [Ranking("a", HI, ["x", "y", "z"], [1, 2, 2], [(0, 1), (1, 0)])],
        "(1, 0) is not a pair of a better and a worse response of the ranking a; count responses from 0, and put "
        "the better one first.",
    ),
    (
        [Ranking("a", HI, ["x", "y", "z"], [1, 2, 2], [(0, 3)])],
        "(0, 3) is not a pair of a better and a worse response of the ranking a; count responses from 0, and put "
        "the better one first.",
    ),
    (
        [Ranking("a", HI, ["x", "y", "z"], [1, 2, 2], [])],
        "None of the 1 rankings has two responses of different rank, so there is no pair.",
    ),
]


@pytest.mark.parametrize("case", range(8))
def test_rankings_that_cannot_be_trained_on_are_said_in_a_sentence(case: int) -> None:
    rankings, sentence = REFUSED[case]
    with pytest.raises(TrainingError) as failed:
        check(rankings, "rankings")
    assert str(failed.value) == sentence


TEMPLATE = Template(make_tokenizer())
TEA = Ranking("tea", HI, ["龙井", "drumming " * 40, "origami", "walking"], [1, 2, 3, 3])


def test_responses_that_are_too_long_are_dropped_and_the_pairs_are_those_of_the_rest() -> None:
    pair = Ranking("pair", HI, ["origami", "drumming " * 40], [2, 1])
    data = tokenize_rankings([TEA, pair], "rankings", TEMPLATE, 60, "drop")
    assert data.rankings == [Ranking("tea", HI, ["龙井", "origami", "walking"], [1, 3, 3])]
    assert [TEMPLATE.tokenizer.decode(list(tokens.ids)) for tokens in data.tokens[0]] == [
        f"<s><|user|>\nhi</s>\n<|assistant|>\n{text}</s>\n" for text in ("龙井", "origami", "walking")
    ]
    assert data.counts() == {
        "rankings": 1,
        "responses": 3,
        "pairs": 2,
        "responses_too_long": 2,
        "rankings_too_long": 1,
    }


def test_too_long_can_be_an_error_that_says_how_much_of_it_is_the_prompt() -> None:
    data = tokenize_rankings([TEA], "rankings", TEMPLATE, 1000, "drop")
    [opening] = TEMPLATE.encode([TEMPLATE.render(HI, opening=True)])
    with pytest.raises(TrainingError) as failed:
        tokenize_rankings([TEA], "rankings", TEMPLATE, 60, "error")
    assert str(failed.value) == (
        "1 of 4 responses make conversations of more than 60 tokens (rankings tea), the longest "
        f"{len(data.tokens[0][1].ids)} ({len(opening)} in the prompt of tea); raise `max_length=...`, or set "
        '`on_overflow="drop"`.'
    )


def test_where_no_pair_is_short_enough_the_error_says_so() -> None:
    asked = Ranking("long", user("a quiet hobby " * 40), ["origami", "drumming"], [1, 2])
    with pytest.raises(TrainingError) as failed:
        tokenize_rankings([asked], "held-out rankings", TEMPLATE, 60, "drop")
    assert str(failed.value) == (
        "None of the 1 held-out rankings has two responses of different rank in at most 60 tokens (2 of 2 responses "
        "are longer); raise `max_length=...`."
    )
