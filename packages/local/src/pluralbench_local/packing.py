"""Pack many conversations into one row of tokens, without padding and without computing shared prefixes twice.

The layout of a batch of three conversations, two of which answer the same prompt, and all of which begin with the same
rules:

    tokens    rules      prompt 1   answer A   answer B   prompt 2 and answer C
    position  0 ... r    r ... p    p ...      p ...      r ...
    attends   itself     rules      rules      rules      rules
                         + itself   + prompt 1 + prompt 1 + itself
                                    + itself   + itself

A *segment* is a run of rows (`rules`, `prompt 1`, `answer A`, ...). Its tokens attend, causally, to themselves and to
all rows of the segments that it continues. The segments that continue a segment come right after it. Conversations
share their longest common token prefix, including the template's opening of the answer. A shared prefix becomes a
segment if that saves more than the merging of attention over one more run costs. In mode `exact` every conversation is
one segment that attends to nothing else, so that it is computed as in a forward pass of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from pluralbench_rewards import Mode

if TYPE_CHECKING:
    from array import array  # not to be subscripted before Python 3.12

ROWS_FOR_A_TOKEN = 16  # rows whose attention is merged in the time of one token in all else; measured on a CPU


@dataclass(frozen=True)
class Tokens:
    """A tokenized conversation.

    Attributes:
        ids: Token ids.
        reads: Consecutive positions whose last hidden state is read.
    """

    ids: "array[int]"
    reads: range


@dataclass(frozen=True)
class Segment:
    """A run of rows of a batch.

    Attributes:
        start: First row.
        end: Row after the last.
        subtree_end: Row after the last that continues this segment; those rows begin at `end`.
        prefix: Runs of rows that this segment continues, in the conversation's order.
        reads: Rows of the segment that are read.
    """

    start: int
    end: int
    subtree_end: int
    prefix: tuple[range, ...]
    reads: range

    @property
    def num_keys(self) -> int:
        """Number of keys that the last row attends to."""
        return sum(map(len, self.prefix)) + self.end - self.start


@dataclass
class Packed:
    """A batch in one row.

    Attributes:
        mode: `exact` or `fast`.
        ids: Token id of each row.
        positions: Position of each row in its conversation.
        segments: Segments, in the order of their rows.
        rows: Rows that are read, by conversation.
        attended_layers: Number of layers whose attention has been computed.
        on_device: Cache of the tensors of the batch on a device, by what they are and the device.
    """

    mode: Mode
    ids: list[int]
    positions: list[int]
    segments: list[Segment]
    rows: list[list[int]]
    attended_layers: int = 0
    on_device: dict[tuple[str, Any], Any] = field(default_factory=dict)

    @cached_property
    def read_rows(self) -> list[int]:
        """Rows that are read, each once, ascending."""
        return [row for segment in self.segments for row in segment.reads]


def common_prefix(sequences: "Sequence[array[int]]") -> int:
    """Return the length of the common prefix, at most one less than the shortest sequence; 0 for one sequence."""
    if len(sequences) == 1:
        return 0
    limit = min(map(len, sequences)) - 1
    runs = [ids.tobytes() for ids in sequences]  # in any sort order, the first and the last differ earliest
    first, last = (np.frombuffer(run, np.intc, limit) for run in (min(runs), max(runs)))
    different = np.flatnonzero(first != last)
    return int(different[0]) if len(different) else limit


def pack(groups: Sequence[Sequence[Tokens]], mode: Mode) -> Packed:
    """Put the conversations of all groups into one row."""
    conversations = [tokens for group in groups for tokens in group]
    packed = Packed(mode, [], [], [], [[] for _ in conversations])
    separate = [[number] for number in range(len(conversations))]
    sorted_numbers = sorted(range(len(conversations)), key=lambda number: conversations[number].ids.tobytes())
    for numbers in [sorted_numbers] if mode == "fast" and conversations else separate:
        _add_conversations(packed, conversations, numbers, ())
    return packed


def _add_conversations(
    packed: Packed, conversations: Sequence[Tokens], numbers: Sequence[int], prefix: tuple[range, ...]
) -> None:
    """Add conversations that continue the rows `prefix`. `numbers`: sorted, so that similar ones are adjacent."""
    begin = sum(map(len, prefix))
    if len(numbers) == 1:
        _add_segment(packed, conversations, numbers, prefix, len(conversations[numbers[0]].ids))
        return
    shared = common_prefix([conversations[number].ids for number in numbers])
    branches = list(_branches(conversations, numbers, shared))
    saved = (len(branches) - 1) * (shared - begin)
    merged = sum(len(conversations[number].ids) - shared for number in numbers)
    if saved * ROWS_FOR_A_TOKEN < max(merged, 1):
        for branch in branches:
            _add_conversations(packed, conversations, branch, prefix)
        return
    index, start = len(packed.segments), len(packed.ids)
    _add_segment(packed, conversations, numbers, prefix, shared)
    for branch in branches:
        _add_conversations(packed, conversations, branch, (*prefix, range(start, start + shared - begin)))
    packed.segments[index] = replace(packed.segments[index], subtree_end=len(packed.ids))


def _branches(conversations: Sequence[Tokens], numbers: Sequence[int], shared: int) -> Iterator[list[int]]:
    """Group conversations by their token after the shared ones; one that ends with that token is separate."""

    def branch(number: int) -> tuple[int, int]:
        ids = conversations[number].ids
        return ids[shared], number if len(ids) == shared + 1 else -1

    for _, same_token in groupby(numbers, key=branch):
        yield list(same_token)


def _add_segment(
    packed: Packed, conversations: Sequence[Tokens], numbers: Sequence[int], prefix: tuple[range, ...], until: int
) -> None:
    """Add the positions up to `until`, where these conversations have the same tokens, as a segment."""
    begin, start = sum(map(len, prefix)), len(packed.ids)
    ids = conversations[numbers[0]].ids[begin:until]
    packed.ids.extend(ids)
    packed.positions.extend(range(begin, until))
    bounds: list[int] = []
    for number in numbers:
        reads = conversations[number].reads
        positions = range(max(reads.start, begin), max(min(reads.stop, until), begin, reads.start))
        packed.rows[number] += [start + position - begin for position in positions]
        bounds += [positions.start, positions.stop] if positions else []
    first, last = (min(bounds), max(bounds)) if bounds else (begin, begin)
    end = start + len(ids)
    packed.segments.append(Segment(start, end, end, prefix, range(start + first - begin, start + last - begin)))
