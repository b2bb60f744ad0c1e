"""A packed row holds every conversation, each token where it belongs."""

from array import array

from hypothesis import given
from hypothesis import strategies as st
from pluralbench_local.packing import KEPT_BUDGETS, Packed, Segment, Tokens, common_prefix, pack, plan
from pluralbench_rewards import Mode
from reward_models import same_beginning

IDS = st.lists(st.integers(0, 2), max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> "list[Tokens]":
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


def rows_of(packed: "Packed", segment: "Segment") -> list[int]:
    """The rows of a conversation up to the end of a segment."""
    return [row for run in (*segment.prefix, range(segment.start, segment.end)) for row in run]


def endings(packed: "Packed") -> "list[Segment]":
    """The segments that end a conversation: those that no other continues."""
    return [segment for segment in packed.segments if segment.subtree_end == segment.end]


@given(GROUPS, MODES)
def test_every_conversation_can_be_read_back(groups: "list[list[Tokens]]", mode: Mode) -> None:
    packed = pack(groups, mode)
    given_in = [tokens for group in groups for tokens in group]
    read_back = []
    for segment in endings(packed):
        rows = rows_of(packed, segment)
        assert [packed.positions[row] for row in rows] == list(range(segment.num_keys))
        read_back.append([packed.ids[row] for row in rows])
    assert sorted(read_back) == sorted(list(tokens.ids) for tokens in given_in)
    if mode == "exact":
        assert read_back == [list(tokens.ids) for tokens in given_in]


@given(GROUPS, MODES)
def test_rows_are_those_of_the_tokens_that_are_read(groups: "list[list[Tokens]]", mode: Mode) -> None:
    packed = pack(groups, mode)
    given_in = [tokens for group in groups for tokens in group]
    ways = [rows_of(packed, segment) for segment in endings(packed)]
    for tokens, rows in zip(given_in, packed.rows, strict=True):
        assert [packed.positions[row] for row in rows] == list(tokens.reads)
        # They are rows of a conversation with these very tokens.
        alike = [way for way in ways if [packed.ids[row] for row in way] == list(tokens.ids)]
        assert any([way[place] for place in tokens.reads] == rows for way in alike)
    assert packed.read_rows == sorted(set(packed.read_rows))
    assert {row for rows in packed.rows for row in rows} <= set(packed.read_rows)
    for segment in packed.segments:
        assert segment.start <= segment.reads.start <= segment.reads.stop <= segment.end


@given(GROUPS, MODES)
def test_segments_cover_the_row_without_a_gap_and_stand_behind_what_they_continue(
    groups: "list[list[Tokens]]", mode: Mode
) -> None:
    packed = pack(groups, mode)
    assert len(packed.positions) == len(packed.ids)
    assert [row for segment in packed.segments for row in range(segment.start, segment.end)] == list(
        range(len(packed.ids))
    )
    by_rows = {range(segment.start, segment.end): segment for segment in packed.segments}
    for segment in packed.segments:
        assert segment.start < segment.end <= segment.subtree_end
        for run in segment.prefix:
            assert by_rows[run].end <= segment.start < by_rows[run].subtree_end
        continuing = [one for one in packed.segments if range(segment.start, segment.end) in one.prefix]
        assert sum(one.end - one.start for one in continuing) == segment.subtree_end - segment.end
        if mode == "exact":
            assert not segment.prefix


@given(GROUPS)
def test_fast_holds_once_what_is_worth_sharing_and_exact_holds_everything(groups: "list[list[Tokens]]") -> None:
    whole = [tuple(tokens.ids) for group in groups for tokens in group]
    total, packed = sum(map(len, whole)), pack(groups, "fast")
    # No layout is shorter than one row for each different beginning, and an end for each conversation.
    beginnings = {ids[:length] for ids in whole for length in range(1, len(ids))}
    assert len(pack(groups, "exact").ids) == total
    assert len(beginnings) + len(whole) <= len(packed.ids) <= total


def test_what_is_not_worth_merging_is_computed_again() -> None:
    texts = [[7, *range(number, number + 300)] for number in (100, 500)]
    given_in = [[Tokens(array("i", ids), range(300, 301))] for ids in texts]
    assert [segment.prefix for segment in pack(given_in, "fast").segments] == [(), ()]


@given(GROUPS, st.integers(1, 30))
def test_batches_of_a_tree_complete_every_conversation_and_compute_what_is_shared_once(
    groups: "list[list[Tokens]]", budget: int
) -> None:
    given_in = [tokens for group in groups for tokens in group]
    longest = max(len(tokens.ids) for tokens in given_in)
    inherited, completed, computed = list[tuple[int, int]](), list[int](), 0  # an id and its position by row
    for packed, numbers in plan(given_in, budget):
        rows = [*inherited, *zip(packed.ids, packed.positions, strict=True)]
        assert len(inherited) == packed.num_inherited <= min(KEPT_BUDGETS * budget, longest)
        assert len(packed.ids) <= max(budget, longest)
        ends = {segment.end: segment for segment in packed.segments}
        for number, reads in zip(numbers, packed.rows, strict=True):
            tokens = given_in[number]
            assert [rows[row + len(inherited)] for row in reads] == [(tokens.ids[at], at) for at in tokens.reads]
            ways = [rows_of(packed, segment) for segment in ends.values() if segment.num_keys == len(tokens.ids)]
            assert list(enumerate(tokens.ids)) in [[rows[row + len(inherited)][::-1] for row in way] for way in ways]
        for segment in (*packed.inherited, *packed.segments):
            run = range(segment.start, segment.end)
            continuing = [row for one in packed.segments if run in one.prefix for row in range(one.start, one.end)]
            assert continuing == list(segment.continued_by)
        inherited = [rows[row + len(inherited)] for run in packed.passed_on for row in run]
        completed += numbers
        computed += len(packed.ids)
    assert sorted(completed) == list(range(len(given_in)))
    assert computed >= len(pack(groups, "fast").ids)
    if KEPT_BUDGETS * budget >= longest:
        assert computed == len(pack(groups, "fast").ids)


def test_a_chain_of_a_thousand_turns_has_no_limit_of_depth() -> None:
    chain = [Tokens(array("i", range(1, length)), range(length - 2, length - 1)) for length in range(2, 2000, 2)]
    assert len(pack([chain], "fast").ids) < sum(len(tokens.ids) for tokens in chain) / 10


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=2, max_size=5))
def test_the_common_prefix_is_the_longest_that_leaves_each_a_token(sequences: list[list[int]]) -> None:
    shared = common_prefix([array("i", ids) for ids in sequences])
    assert shared == min(same_beginning(*sequences), min(map(len, sequences)) - 1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(2, 5), st.integers(1, 3))
def test_a_prompt_is_held_once_for_all_its_answers(prompt: list[int], answers: int, groups: int) -> None:
    """With other prompts in the batch or not, and where prompts begin alike, that is held once too."""
    texts = [
        [[*range(100, 120), number, *prompt, 10 + answer] for answer in range(answers)] for number in range(groups)
    ]
    given_in = [[Tokens(array("i", ids), range(len(ids) - 1, len(ids))) for ids in group] for group in texts]
    own = (1 + len(prompt) + answers) * groups
    assert len(pack(given_in, "fast").ids) == 20 + own
