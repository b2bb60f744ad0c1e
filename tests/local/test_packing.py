"""A packed row holds every conversation, each token where it belongs."""

from array import array

from hypothesis import given
from hypothesis import strategies as st
from pluralbench_local.packing import Packed, Segment, Tokens, common_prefix, pack
from pluralbench_rewards import Mode
from reward_models import same_beginning

IDS = st.lists(st.integers(0, 2), max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> list[Tokens]:
    """A group: conversations that begin alike and go on each by itself, read anywhere."""
    prompt = draw(IDS)
    group = []
    for tail in draw(st.lists(IDS, min_size=1, max_size=5)):
        ids = array("i", prompt + tail or [0])
        start = draw(st.integers(0, len(ids) - 1))
        group.append(Tokens(ids, range(start, draw(st.integers(start + 1, len(ids))))))
    return group


GROUPS = st.lists(conversations(), min_size=1, max_size=4)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["exact", "fast"])


def own_segments(packed: Packed) -> list[Segment]:
    """The segments that end a conversation, in order: those that no other continues."""
    continued = {(segment.prefix_start, segment.prefix_end) for segment in packed.segments}
    return [segment for segment in packed.segments if (segment.start, segment.end) not in continued]


@given(GROUPS, MODES)
def test_every_conversation_can_be_read_back(groups: list[list[Tokens]], mode: Mode) -> None:
    packed = pack(groups, mode)
    given_in = [tokens for group in groups for tokens in group]
    for tokens, segment in zip(given_in, own_segments(packed), strict=True):
        rows = [*range(segment.prefix_start, segment.prefix_end), *range(segment.start, segment.end)]
        assert [packed.ids[row] for row in rows] == list(tokens.ids)
        assert [packed.positions[row] for row in rows] == list(range(len(tokens.ids)))
        assert segment.seen == len(tokens.ids)


@given(GROUPS, MODES)
def test_rows_are_those_of_the_tokens_that_are_read(groups: list[list[Tokens]], mode: Mode) -> None:
    packed = pack(groups, mode)
    given_in = [tokens for group in groups for tokens in group]
    for tokens, segment, rows in zip(given_in, own_segments(packed), packed.rows, strict=True):
        seen = [*range(segment.prefix_start, segment.prefix_end), *range(segment.start, segment.end)]
        assert rows == [seen[place] for place in tokens.reads]
    assert packed.read_rows == sorted(set(packed.read_rows))
    assert {row for rows in packed.rows for row in rows} <= set(packed.read_rows)
    for segment in packed.segments:
        assert segment.start <= segment.reads.start <= segment.reads.stop <= segment.end


@given(GROUPS, MODES)
def test_segments_cover_the_row_without_a_gap_and_continue_only_what_came_before(
    groups: list[list[Tokens]], mode: Mode
) -> None:
    packed = pack(groups, mode)
    assert len(packed.positions) == len(packed.ids)
    assert [row for segment in packed.segments for row in range(segment.start, segment.end)] == list(
        range(len(packed.ids))
    )
    for segment in packed.segments:
        assert segment.start < segment.end
        assert segment.prefix_start <= segment.prefix_end <= segment.start
        if mode == "exact":
            assert segment.prefix_start == segment.prefix_end


@given(GROUPS)
def test_fast_holds_what_a_group_begins_with_once_and_exact_holds_everything(groups: list[list[Tokens]]) -> None:
    whole = [[list(tokens.ids) for tokens in group] for group in groups]
    spared = sum(
        (len(group) - 1) * min(same_beginning(*group), min(map(len, group)) - 1) for group in whole if len(group) > 1
    )
    total = sum(len(ids) for group in whole for ids in group)
    assert len(pack(groups, "exact").ids) == total
    assert len(pack(groups, "fast").ids) == total - spared


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=2, max_size=5))
def test_the_common_prefix_is_the_longest_that_leaves_each_a_token(sequences: list[list[int]]) -> None:
    shared = common_prefix([array("i", ids) for ids in sequences])
    assert shared == min(same_beginning(*sequences), min(map(len, sequences)) - 1)


def test_one_conversation_shares_nothing() -> None:
    assert common_prefix([array("i", [1, 2, 3])]) == 0
