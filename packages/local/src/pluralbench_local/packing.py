"""Pack many conversations into rows of tokens, without padding and without computing shared prefixes twice.

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

In mode `fast` all conversations of a benchmark form one tree of segments, and `plan` cuts it, depth first, into
batches. A batch may begin in the middle of the tree, at `answer B` for example. It then *inherits* `rules` and
`prompt 1`: their keys and values are kept from earlier batches, and their rows have negative numbers. Only the segments
that the next row continues are kept, so their tokens are never more than those of one conversation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pluralbench_rewards import Mode
from torch import Tensor

if TYPE_CHECKING:
    from array import array  # not to be subscripted before Python 3.12

ROWS_FOR_A_TOKEN = 16  # rows whose attention is merged in the time of one token in all else; measured on a CPU
KEPT_BUDGETS = 4  # token budgets whose keys and values are kept at most; longer prefixes are computed again


@dataclass(frozen=True)
class Tokens:
    """A tokenized conversation.

    Attributes:
        ids: Token ids.
        reads: Consecutive positions whose last hidden state is read.
        marks: Those of them that end a step, if the steps are read.
        second: Where the second segment begins, for models that embed segments; None if there is one segment.
    """

    ids: "array[int]"
    reads: range
    marks: tuple[int, ...] = ()
    second: int | None = None


@dataclass(frozen=True)
class Segment:
    """A run of rows of a batch.

    Attributes:
        start: First row; negative if it is inherited.
        end: Row after the last.
        subtree_end: Row after the last that continues this segment; those rows begin at `end`, or at 0 if it is
            inherited.
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

    @property
    def continued_by(self) -> range:
        """Rows that continue this segment."""
        return range(max(self.end, 0), self.subtree_end)


@dataclass
class Kept:
    """What a network has computed of the rows that the next batch inherits.

    Attributes:
        layers: Keys and values of each layer, of shape (1, key heads, rows, width).
        states: Last hidden states, of shape (rows, width), valid where they are read.
    """

    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    states: Tensor | None = None

    def skip(self, packed: "Packed") -> None:
        """Pass on what is kept past a batch that is not computed, without the rows that it would compute."""
        rows = sum(len(run) for run in packed.passed_on if run.start < 0)
        self.layers = [(key[:, :, :rows], value[:, :, :rows]) for key, value in self.layers] if rows else []
        self.states = self.states[:rows] if rows and self.states is not None else None


@dataclass
class Packed:
    """A batch in one row.

    Attributes:
        mode: `exact` or `fast`.
        ids: Token id of each row.
        positions: Position of each row in its conversation.
        segments: Segments, in the order of their rows.
        rows: Rows that are read, by conversation.
        inherited: Segments of earlier batches that rows of this one continue.
        passed_on: Rows that the next batch inherits, in the conversation's order.
        kept: What the network has kept of the rows.
        attended_layers: Number of layers whose attention has been computed.
        on_device: Cache of the tensors of the batch on a device, by what they are and the device.
    """

    mode: Mode
    ids: list[int]
    positions: list[int]
    segments: list[Segment]
    rows: list[list[int]]
    inherited: list[Segment] = field(default_factory=list)
    passed_on: list[range] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    attended_layers: int = 0
    on_device: dict[tuple[str, Any], Any] = field(default_factory=dict)

    @cached_property
    def read_rows(self) -> list[int]:
        """Computed rows that are read, each once, ascending."""
        return [row for segment in self.segments for row in segment.reads]

    @cached_property
    def num_inherited(self) -> int:
        """Number of inherited rows; row r is at index r + num_inherited of the keys."""
        return sum(segment.end - segment.start for segment in self.inherited)

    @property
    def passes_on_more(self) -> bool:
        """Whether the next batch inherits other rows than this one."""
        return self.passed_on != [range(segment.start, segment.end) for segment in self.inherited]

    def keys_of(self, run: Segment | range) -> slice:
        """Return where the keys of a segment or run of rows are."""
        end = run.end if isinstance(run, Segment) else run.stop
        return slice(run.start + self.num_inherited, end + self.num_inherited)

    def pass_on(self, rows: Tensor, axis: int) -> Tensor:
        """Copy what the next batch inherits of a tensor with all rows, the inherited ones first, on its `axis`."""
        runs = [rows.narrow(axis, self.keys_of(run).start, len(run)) for run in self.passed_on]
        return torch.cat(runs, axis)


@dataclass(frozen=True)
class _Step:
    """A segment of the tree, before it has rows in a batch.

    `depth` is the number of segments that it continues, `number` a conversation with these tokens; positions are in its
    conversations, and `last` says whether it ends one.
    """

    depth: int
    begin: int
    end: int
    number: int
    reads: range
    last: bool


def last_states(states: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return the state that is read last of each conversation, whose `rows` are the indices of its states."""
    return states[to_device([indices[-1] for indices in rows], states.device)]


def to_device(values: Tensor | Sequence[int] | Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Copy a tensor, or integers as one of 64 bits, from the CPU to a device.

    An ordinary copy to a GPU waits until the GPU has finished all earlier work. From pinned memory it is one more item
    of that work.
    """
    tensor = values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.long)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


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
    batch = _Batch(conversations, mode, ())
    for step in _tree(conversations) if mode == "fast" else _separate(conversations):
        batch.close(step.depth)
        batch.add(step)
    packed, numbers = batch.finish(())
    rows = dict(zip(numbers, packed.rows, strict=True))
    return replace(packed, rows=[rows[number] for number in range(len(conversations))])


def plan(conversations: Sequence[Tokens], token_budget: int) -> Iterator[tuple[Packed, list[int]]]:
    """Pack conversations into batches for mode `fast`, in an order that computes shared prefixes once.

    Similar conversations are neighbors; of the branches of a prefix, the one with the longest conversation comes first.
    A batch that completes a single conversation may have more than `token_budget` tokens. Keys and values are kept for
    at most `KEPT_BUDGETS` times as many tokens; the rest of a longer prefix is computed again by each batch.

    Yields a batch, and its conversations in the order of `Packed.rows`.
    """
    batch = _Batch(conversations, "fast", ())
    for step in _tree(conversations):
        batch.close(step.depth)
        if batch.numbers and len(batch.packed.ids) + step.end - step.begin > token_budget:
            path = [ancestor for ancestor, _ in batch.path]
            kept = [ancestor for ancestor in path if ancestor.end <= KEPT_BUDGETS * token_budget]
            yield batch.finish(kept)
            batch = _Batch(conversations, "fast", kept)
            for ancestor in path[len(kept) :]:
                batch.add(ancestor)
        batch.add(step)
    if batch.numbers:
        yield batch.finish(())


def needed_batches(batches: Iterable[tuple[Packed, list[int]]], wanted: Sequence[bool]) -> list[bool]:
    """Return which batches of a plan have to be computed for the conversations that are wanted.

    They are those that complete such a conversation, and those that compute a prefix which a needed batch inherits.
    """
    needed: list[bool] = []
    origins: list[list[int]] = []  # by batch: the batches that compute the segments that it inherits
    path: list[int] = []
    for number, (packed, completed) in enumerate(batches):
        needed.append(any(wanted[conversation] for conversation in completed))
        origins.append(path)
        path = [path[place] if run.start < 0 else number for place, run in enumerate(packed.passed_on)]
    for number in reversed(range(len(needed))):
        if needed[number]:
            for origin in origins[number]:
                needed[origin] = True
    return needed


class _Batch:
    """A batch to which the segments of a tree are added. It completes the conversations `numbers`.

    The next segment may continue those of `path`, each with its index among those inherited and computed.
    """

    def __init__(self, conversations: Sequence[Tokens], mode: Mode, inherited: Sequence[_Step]) -> None:
        self.packed = Packed(mode, [], [], [], [])
        self.numbers: list[int] = []
        self.path: list[tuple[_Step, int]] = []
        self._conversations = conversations
        self._segments: list[Segment] = []
        self._num_inherited = len(inherited)
        rows = inherited[-1].end if inherited else 0
        for step in inherited:
            self._place(step, step.begin - rows)

    def close(self, depth: int) -> None:
        """End the segments of the path that the next one, of this depth, does not continue."""
        for _, index in self.path[depth:]:
            self._segments[index] = replace(self._segments[index], subtree_end=len(self.packed.ids))
        del self.path[depth:]

    def add(self, step: _Step) -> None:
        start = len(self.packed.ids)
        tokens = self._conversations[step.number]
        self.packed.ids.extend(tokens.ids[step.begin : step.end])
        self.packed.positions.extend(range(step.begin, step.end))
        self._place(step, start)
        if step.last:
            self.numbers.append(step.number)
            self.packed.rows.append([row for placed in self.path for row in self._read_rows(placed, tokens.reads)])

    def finish(self, kept: Sequence[_Step]) -> tuple[Packed, list[int]]:
        """Return the batch, which passes on the first segments of its path, and its conversations."""
        segments = [self._segments[index] for _, index in self.path[: len(kept)]]
        self.packed.passed_on = [range(segment.start, segment.end) for segment in segments]
        self.close(0)
        self.packed.inherited = self._segments[: self._num_inherited]
        self.packed.segments = self._segments[self._num_inherited :]
        return self.packed, self.numbers

    def _place(self, step: _Step, start: int) -> None:
        runs = (self._segments[index] for _, index in self.path)
        prefix = tuple(range(segment.start, segment.end) for segment in runs)
        end, first = start + step.end - step.begin, start - step.begin
        reads = range(first + step.reads.start, first + step.reads.stop)
        self.path.append((step, len(self._segments)))
        self._segments.append(Segment(start, end, end, prefix, reads))

    def _read_rows(self, placed: tuple[_Step, int], reads: range) -> range:
        step, index = placed
        first = self._segments[index].start - step.begin
        return range(first + max(reads.start, step.begin), first + min(reads.stop, step.end))


def _separate(conversations: Sequence[Tokens]) -> Iterator[_Step]:
    for number, tokens in enumerate(conversations):
        yield _Step(0, 0, len(tokens.ids), number, tokens.reads, last=True)


def _tree(conversations: Sequence[Tokens]) -> Iterator[_Step]:
    """Depth first."""
    order = sorted(range(len(conversations)), key=lambda number: conversations[number].ids.tobytes())
    members = [conversations[number] for number in order]
    lengths = np.array([len(tokens.ids) for tokens in members])
    reads = np.array([(tokens.reads.start, tokens.reads.stop) for tokens in members]).reshape(-1, 2)
    # Of each conversation, the tokens that it shares with the one before; in this order that is the most with any.
    shared = np.array([0, *(common_prefix([one.ids, other.ids]) for one, other in pairwise(members))])[: len(order)]
    own = np.concatenate(([0], np.cumsum(lengths - shared)))
    branches = [(0, len(order), 0, 0)] if order else []  # first and last place, depth, position
    while branches:
        first, last, depth, begin = branches.pop()
        if last - first == 1:
            tokens = members[first]
            read = range(max(tokens.reads.start, begin), max(tokens.reads.stop, begin))
            yield _Step(depth, begin, len(tokens.ids), order[first], read, last=True)
            continue
        between = shared[first + 1 : last]
        end = int(between.min())
        starts = np.concatenate(([first], np.flatnonzero(between == end) + first + 1))
        saved = (len(starts) - 1) * (end - begin)
        merged = lengths[first] - end + own[last] - own[first + 1]
        if saved * ROWS_FOR_A_TOKEN >= max(merged, 1):
            yield _Step(depth, begin, end, order[first], _union(reads[first:last], begin, end), last=False)
            depth, begin = depth + 1, end
        ends = [*starts[1:].tolist(), last]
        by_length = np.argsort(np.maximum.reduceat(lengths[:last], starts), kind="stable")
        branches += [(int(starts[place]), ends[place], depth, begin) for place in by_length]


def _union(reads: Any, begin: int, end: int) -> range:
    """The least range with all positions from `begin` to `end` in these pairs of a first and a last position."""
    clipped = reads.clip(begin, end)
    clipped = clipped[clipped[:, 0] < clipped[:, 1]]
    return range(int(clipped[:, 0].min()), int(clipped[:, 1].max())) if len(clipped) else range(begin, begin)
