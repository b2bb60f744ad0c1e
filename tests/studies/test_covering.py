"""Which items are shown together: every pair, in no more triples than it takes."""

from collections import Counter
from itertools import combinations

import pytest
from pluralbench_studies import covering_design

# C(v, 3, 2), as the literature has it (Fort and Hedlund, 1958; La Jolla covering repository).
KNOWN = {3: 1, 4: 3, 5: 4, 6: 6, 7: 7, 8: 11, 9: 12, 10: 17, 11: 19, 12: 24, 13: 26, 14: 33, 15: 35, 16: 43, 17: 46}


def pairs(blocks: list[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    return Counter(pair for block in blocks for pair in combinations(sorted(block), 2))


def test_every_pair_is_in_some_triple_and_no_smaller_design_does() -> None:
    for count in range(3, 41):
        blocks = covering_design(count)
        assert pairs(blocks).keys() == {*combinations(range(count), 2)}
        assert {len(set(block)) for block in blocks} == {3}
        # Schönheim: each item meets the others two at a time, and each triple holds three items.
        assert len(blocks) == -(-count * -(-(count - 1) // 2) // 3)
        assert len(blocks) == KNOWN.get(count, len(blocks))
        assert blocks == sorted(blocks) == covering_design(count)
        if count % 6 in {1, 3}:
            assert set(pairs(blocks).values()) == {1}  # a Steiner system: no pair is there twice


def test_two_make_one_block_of_two_and_one_makes_none() -> None:
    assert covering_design(2) == [(0, 1)]
    for count in (1, 0, -3):
        with pytest.raises(ValueError, match=f"^{count} items make no pair.$"):
            covering_design(count)
