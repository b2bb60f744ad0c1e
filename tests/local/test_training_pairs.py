"""Rankings of which only some pairs are to be learned from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_local import Ranking, TrainingError
from pluralbench_local.training_batches import batches, check
from pluralbench_measures.rankings import pairs_of
from reward_models import user


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        rank = draw(st.lists(st.integers(0, 3), min_size=2, max_size=7))
        pairs = draw(st.lists(st.sampled_from(pairs_of(rank)), unique=True)) if len(set(rank)) > 1 else []
        texts = [f"text {place}" for place in range(len(rank))]
        made.append(Ranking(f"q{number}", user("hi"), texts, rank, pairs))
    return made


@given(rankings(), st.integers(0, 2))
def test_a_batch_has_the_pairs_that_were_given_and_no_other(made: list[Ranking], epoch: int) -> None:
    learned = []
    for batch in batches(made, 8, seed=0, epoch=epoch):
        for better, worse in batch.pairs:
            (ranking, one), (other, two) = batch.members[better], batch.members[worse]
            assert ranking == other
            learned.append((ranking, (one, two)))
    expected = [(number, pair) for number, ranking in enumerate(made) for pair in ranking.pairs or ()]
    assert sorted(learned) == sorted(expected)


def test_pairs_have_to_keep_to_the_ranks() -> None:
    def given_pairs(*pairs: tuple[int, int]) -> list[Ranking]:
        return [Ranking("q7", user("hi"), ["a", "b", "c"], [1, 2, 2], pairs)]

    check(given_pairs((0, 1)), "rankings")
    with pytest.raises(TrainingError, match=r"q7 has the pair \(1, 0\), which its ranks do not order so"):
        check(given_pairs((1, 0)), "rankings")
    with pytest.raises(TrainingError, match=r"q7 has the pair \(1, 2\)"):
        check(given_pairs((1, 2)), "rankings")
    with pytest.raises(TrainingError, match="q7 has a pair of a response that it does not have"):
        check(given_pairs((0, 3)), "rankings")
    with pytest.raises(TrainingError, match="so there is no pair"):
        check(given_pairs(), "rankings")
