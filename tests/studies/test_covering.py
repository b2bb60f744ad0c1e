"""Which responses are shown together: every pair, in no more tasks than it takes, and along the ring for five."""

import time
from collections import Counter
from itertools import combinations

import pytest
from build_chinese.covering import design, smallest_size

# C(v, 3, 2), as the literature has it (Fort and Hedlund, 1958; La Jolla covering repository).
KNOWN = {3: 1, 4: 3, 6: 6, 7: 7, 8: 11, 9: 12, 10: 17, 11: 19, 12: 24, 13: 26, 14: 33, 15: 35, 16: 43, 17: 46, 18: 54}


def pairs(blocks: list[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    return Counter(pair for block in blocks for pair in combinations(sorted(block), 2))


@pytest.mark.parametrize("count", range(2, 41))
def test_every_pair_is_shown_together(count: int) -> None:
    blocks = design(count)
    assert pairs(blocks).keys() == {*combinations(range(count), 2)}
    assert {len(set(block)) for block in blocks} == {min(count, 3)}
    assert len({frozenset(block) for block in blocks}) == len(blocks)


@pytest.mark.parametrize("count", [count for count in range(3, 41) if count != 5])
def test_no_smaller_design_does(count: int) -> None:
    # Schönheim: each response meets the others two at a time, and each triple holds three responses.
    each = -(-(count - 1) // 2)
    assert len(design(count)) == smallest_size(count) == -(-count * each // 3)
    assert len(design(count)) == KNOWN.get(count, len(design(count)))


@pytest.mark.parametrize("count", [count for count in range(3, 41) if count % 6 in {1, 3}])
def test_where_it_is_possible_no_pair_is_shown_twice(count: int) -> None:
    assert set(pairs(design(count)).values()) == {1}


def test_five_are_shown_along_the_ring() -> None:
    ring = design(5)
    assert ring == [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]
    assert [Counter(block[place] for block in ring) for place in range(3)] == [Counter(range(5))] * 3
    # Neighbours are seen twice, all others once (15 judgements on 10 pairs).
    assert Counter(pairs(ring).values()) == {1: 5, 2: 5}
    assert smallest_size(5) == 4


def test_two_make_one_task_of_two_and_one_makes_none() -> None:
    assert design(2) == [(0, 1)]
    for count in (1, 0, -3):
        with pytest.raises(ValueError, match=f"^{count} responses make no pair.$"):
            design(count)


def test_a_design_is_the_same_each_time_and_its_own() -> None:
    first = design(5)
    first.clear()
    assert len(design(5)) == 5
    assert design(13) == design(13)


def test_designs_are_made_at_once() -> None:
    start = time.monotonic()
    for count in range(2, 41):
        design(count)
    assert time.monotonic() - start < 2
