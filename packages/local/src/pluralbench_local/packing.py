"""Packing: many conversations in one row of tokens, without padding and without computing twice what they share.

The layout of a batch, here of three conversations of which two answer one prompt, and all begin with the same rules:

    tokens    rules      prompt 1   answer A   answer B   prompt 2 and answer C
    position  0 ... r    r ... p    p ...      p ...      r ...
    attends   itself     rules      rules      rules      rules
                         + itself   + prompt 1 + prompt 1 + itself
                                    + itself   + itself

A *segment* is a run of rows (`rules`, `prompt 1`, `answer A`, ...). Its tokens attend, causally, to themselves and to
all rows of the segments that it continues. Segments follow one another such that whatever continues a segment stands
right behind it. What conversations share is their longest common token prefix, so a template's opening words of the
answer are in it too; it becomes a segment where that spares more than it costs to merge attention to one run more. In
mode `exact` every conversation is one segment of its own that attends to nothing else: what is computed is what a
forward pass of that conversation alone computes.
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

ROWS_FOR_A_TOKEN = 16  # whose attention is merged in the time that one token takes in all else; measured on a CPU


@dataclass(frozen=True)
class Tokens:
    """A conversation in tokens. reads: positions whose last hidden state is asked for, without a gap."""

    ids: "array[int]"
    reads: range


@dataclass(frozen=True)
class Segment:
    """Rows [start, end) of a batch, which continue the runs of rows `before`, and which rows [end, below) continue.

    before: the first rows of the conversation first. reads: those of its rows that are read.
    """

    start: int
    end: int
    below: int
    before: tuple[range, ...]
    reads: range

    @property
    def seen(self) -> int:
        """How many keys its last row attends to."""
        return sum(map(len, self.before)) + self.end - self.start


@dataclass
class Packed:
    """A batch in one row: token ids and positions of its rows, and for each conversation the rows of its `reads`.

    attended: in how many layers its attention was computed.
    levels: of a kernel for runs of any length, by device.
    """

    mode: Mode
    ids: list[int]
    positions: list[int]
    segments: list[Segment]
    rows: list[list[int]]
    attended: int = 0
    levels: dict[Any, list[Any]] = field(default_factory=dict)

    @cached_property
    def read_rows(self) -> list[int]:
        """The rows that are read, each once, ascending."""
        return [row for segment in self.segments for row in segment.reads]


def common_prefix(sequences: "Sequence[array[int]]") -> int:
    """How many tokens all sequences begin with alike, at most one less than the shortest has; 0 for one sequence."""
    if len(sequences) == 1:
        return 0
    limit = min(map(len, sequences)) - 1
    runs = [ids.tobytes() for ids in sequences]  # in any order, the first and the last differ earliest
    first, last = (np.frombuffer(run, np.intc, limit) for run in (min(runs), max(runs)))
    different = np.flatnonzero(first != last)
    return int(different[0]) if len(different) else limit


def pack(groups: Sequence[Sequence[Tokens]], mode: Mode) -> Packed:
    """Lay conversations end to end; `rows` follows the order of all the groups' conversations."""
    conversations = [tokens for group in groups for tokens in group]
    packed = Packed(mode, [], [], [], [[] for _ in conversations])
    apart = [[number] for number in range(len(conversations))]
    together = [sorted(range(len(conversations)), key=lambda number: conversations[number].ids.tobytes())]
    for numbers in together if mode == "fast" and conversations else apart:
        _lay(packed, conversations, numbers, ())
    return packed


def _lay(packed: Packed, conversations: Sequence[Tokens], numbers: Sequence[int], before: tuple[range, ...]) -> None:
    """Lay the rows of conversations that begin with the rows `before`; in `numbers` those alike are neighbours."""
    begun = sum(map(len, before))
    if len(numbers) == 1:
        _append(packed, conversations, numbers, before, len(conversations[numbers[0]].ids))
        return
    shared = common_prefix([conversations[number].ids for number in numbers])
    branches = list(_branches(conversations, numbers, shared))
    spared = (len(branches) - 1) * (shared - begun)
    merged = sum(len(conversations[number].ids) - shared for number in numbers)
    if spared * ROWS_FOR_A_TOKEN < max(merged, 1):
        for branch in branches:
            _lay(packed, conversations, branch, before)
        return
    place, start = len(packed.segments), len(packed.ids)
    _append(packed, conversations, numbers, before, shared)
    for branch in branches:
        _lay(packed, conversations, branch, (*before, range(start, start + shared - begun)))
    packed.segments[place] = replace(packed.segments[place], below=len(packed.ids))


def _branches(conversations: Sequence[Tokens], numbers: Sequence[int], shared: int) -> Iterator[list[int]]:
    """The conversations by the token after those they share; one that ends with that token is by itself."""

    def branch(number: int) -> tuple[int, int]:
        ids = conversations[number].ids
        return ids[shared], number if len(ids) == shared + 1 else -1

    for _, alike in groupby(numbers, key=branch):
        yield list(alike)


def _append(
    packed: Packed, conversations: Sequence[Tokens], numbers: Sequence[int], before: tuple[range, ...], until: int
) -> None:
    """One segment: the positions up to `until` of conversations that are alike there."""
    begun, start = sum(map(len, before)), len(packed.ids)
    ids = conversations[numbers[0]].ids[begun:until]
    packed.ids.extend(ids)
    packed.positions.extend(range(begun, until))
    read: list[int] = []
    for number in numbers:
        reads = conversations[number].reads
        own = range(max(reads.start, begun), max(min(reads.stop, until), begun, reads.start))
        packed.rows[number] += [start + place - begun for place in own]
        read += [own.start, own.stop] if own else []
    first, last = (min(read), max(read)) if read else (begun, begun)
    end = start + len(ids)
    packed.segments.append(Segment(start, end, end, before, range(start + first - begun, start + last - begun)))
