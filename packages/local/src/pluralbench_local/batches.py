"""Batches of conversations within a budget of tokens, which shrinks when memory runs out."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar

import torch
from pluralbench_rewards import Group, OnScored, Overflow, Scored, Work
from pluralbench_runs import log_status, progress
from torch import Tensor

from pluralbench_local.conversations import (
    Template,
    Tokenized,
    count_bos,
    count_ending_in_padding,
    identical_renderings,
    tokenize,
)
from pluralbench_local.errors import LocalError, is_out_of_memory
from pluralbench_local.network import ReadableNetwork, read_packed, read_padded
from pluralbench_local.packing import Kept, Packed, Tokens, common_prefix, needed_batches, pack, plan

Read = Callable[[ReadableNetwork, Sequence[Sequence[Tokens]]], tuple[Tensor, list[list[int]], int]]
T = TypeVar("T")
Compute = Callable[[Sequence[Sequence[Tokens]], Read], tuple[Sequence[T], int]]
"""From conversations by group, and a way to read a network, to a value of each and the number of tokens computed."""
Conversations = dict[int, list[int]]
"""Indices of conversations by index of their group."""
Finish = Callable[[int, list[Any]], Sequence[float]] | None
"""From the index of a group and the values of its conversations to its scores."""


class ScoreTable:
    """Tokenized groups and their scores so far. Responses with the same tokens are scored once.

    Attributes:
        tokenized: The tokens of each group.
        cached: Scores of groups that are not scored again, by index of the group.
        duplicates: By index of a group to score: the responses with the same tokens, by the first of them.
        blocks: By block: the index of each group in it, scored or not, with the conversations that have different
            tokens.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        template: Template,
        limit: int,
        on_overflow: Overflow,
        cached: Mapping[int, list[float]],
    ) -> None:
        self.tokenized = tokenize(groups, template, limit, on_overflow)
        self._alike = identical_renderings(groups, self.tokenized)
        self._two_bos, self._without_bos = count_bos(self.tokenized, template)
        self._ending_in_padding = count_ending_in_padding(self.tokenized, template)
        kept = [index for index, result in enumerate(self.tokenized) if not result.dropped]
        self.cached = {index: list(cached[index]) for index in kept if index in cached}
        different = {index: _duplicates(self.tokenized[index]) for index in kept}
        self.duplicates = {index: duplicates for index, duplicates in different.items() if index not in cached}
        blocks: dict[int, Conversations] = defaultdict(dict)
        for index, duplicates in different.items():
            blocks[groups[index].block][index] = list(duplicates)
        self.blocks = list(blocks.values())
        self._scores = [dict(enumerate(self.cached.get(index, ()))) for index in range(len(groups))]

    @contextmanager
    def recording(
        self, on_scored: OnScored, finish: Finish = None
    ) -> Iterator[Callable[[int, Mapping[int, Any]], None]]:
        """Yield a function that records scores of a group by response; completed groups go to `on_scored`.

        With `finish`, it records values, from which this makes the scores of a completed group.
        """
        done = len(self.cached)
        with progress("scoring", done + len(self.duplicates), done=done) as meter:

            def record(index: int, values: Mapping[int, Any]) -> None:
                scores = self._scores[index]
                for first, value in values.items():
                    scores |= dict.fromkeys(self.duplicates[index][first], value)
                if len(scores) == len(self.tokenized[index].conversations):
                    if finish is not None:
                        scores = self._scores[index] = dict(enumerate(finish(index, _in_order(scores))))
                    meter.advance()
                    if on_scored is not None:
                        on_scored({index: _in_order(scores)})

            yield record

    def scored(self, **fields: Any) -> Scored:
        """Return all scores and the results of tokenizing, with these further `fields` of `Scored`."""
        return Scored(
            scores=[_in_order(scores) for scores in self._scores],
            tokens=[[len(tokens.ids) for tokens in result.conversations] for result in self.tokenized],
            tokens_cut=[result.cut for result in self.tokenized],
            dropped={index: result.dropped for index, result in enumerate(self.tokenized) if result.dropped},
            rendered_identically=self._alike,
            inputs_with_two_bos=self._two_bos,
            inputs_without_bos=self._without_bos,
            inputs_ending_in_padding=self._ending_in_padding,
            **fields,
        )


def _in_order(values: Mapping[int, Any]) -> list[Any]:
    return [values[response] for response in range(len(values))]


@dataclass(frozen=True)
class _Batch:
    """Conversations of a forward pass: index of the group and of the conversation in it, and the number of tokens."""

    members: list[tuple[int, int]]
    conversations: list[Tokens]
    tokens: int
    read: Read


def in_batches(
    compute: Compute[T],
    tokenized: Sequence[Tokenized],
    remaining: Conversations,
    work: Work,
    ids: Sequence[str],
    blocks: Sequence[Conversations] | None = None,
) -> Iterator[tuple[int, dict[int, T]]]:
    """Compute values batch by batch, with smaller batches if memory runs out.

    The rounding of a value depends on its batch. So the batches of a block are planned from all of it, whatever
    remains, and each with a remaining conversation is computed whole. Computed ones are removed from `remaining`; the
    counts of `work` are updated; without `blocks`, what remains is one block.

    Yields:
        The index of a group, and values by the index of the conversation in it.

    Raises:
        LocalError: If one conversation does not fit into memory.
    """
    work.conversations += sum(len(tokenized[group].conversations) for group in remaining)
    work.unique_tokens += tokens_to_compute(tokenized, remaining, "fast")
    batches = _plan_batches(tokenized, blocks or [dict(remaining)], remaining, work)
    while (batch := next(batches, None)) is not None:
        values = None
        try:
            with torch.inference_mode():
                values, computed = compute([batch.conversations], batch.read)
        except (RuntimeError, MemoryError) as error:
            _halve_budget(error, batch, work, ids)
        if values is None:
            del batch
            rest = [{group: remaining.get(group, []) for group in block} for block in blocks or [remaining]]
            batches = _plan_batches(tokenized, rest, remaining, work)
            torch.cuda.empty_cache()  # only now: the error and the batches held the tensors of the failed one
            continue
        work.batches += 1
        work.computed_tokens += computed
        by_group: dict[int, dict[int, T]] = defaultdict(dict)
        for (group, place), value in zip(batch.members, values, strict=True):
            if place in remaining.get(group, ()):  # else it is known, and was computed for the sake of the batch
                by_group[group][place] = value
        for group, computed_values in by_group.items():
            remaining[group] = [place for place in remaining[group] if place not in computed_values]
            yield group, computed_values


def tokens_to_compute(tokenized: Sequence[Tokenized], remaining: Mapping[int, Sequence[int]], strategy: str) -> int:
    """Count the tokens of conversations; in strategy "fast", the prefix that those of a group share counts once."""
    total = 0
    for group, places in remaining.items():
        ids = [tokenized[group].conversations[place].ids for place in places]
        total += sum(map(len, ids)) - ((len(ids) - 1) * common_prefix(ids) if strategy == "fast" else 0)
    return total


def _duplicates(tokenized: Tokenized) -> dict[int, list[int]]:
    """By the first of them."""
    first: dict[tuple[bytes, tuple[int, ...]], int] = {}
    duplicates: dict[int, list[int]] = {}
    for response, tokens in enumerate(tokenized.conversations):
        duplicates.setdefault(first.setdefault((tokens.ids.tobytes(), tokens.marks), response), []).append(response)
    return duplicates


def _plan_batches(
    tokenized: Sequence[Tokenized], blocks: Sequence[Conversations], remaining: Conversations, work: Work
) -> Iterator[_Batch]:
    """Batches of at most `token_budget` tokens (or of one conversation) that complete what remains of each block."""
    for block in blocks:
        members = [(group, place) for group, places in block.items() for place in places]
        wanted = [place in remaining.get(group, ()) for group, place in members]
        if not any(wanted):
            continue
        if work.strategy == "fast":
            yield from _sharing_batches(tokenized, members, wanted, work)
        else:
            needed = dict(zip(members, wanted, strict=True))
            separate = _separate_batches(tokenized, block, work)
            yield from (batch for batch in separate if any(needed[member] for member in batch.members))


def _sharing_batches(
    tokenized: Sequence[Tokenized], members: Sequence[tuple[int, int]], wanted: Sequence[bool], work: Work
) -> Iterator[_Batch]:
    """Batches that compute each prefix once for all groups."""
    conversations = [tokenized[group].conversations[place] for group, place in members]
    needed = repeat(True) if all(wanted) else needed_batches(plan(conversations, work.token_budget), wanted)
    kept: dict[int, Kept] = defaultdict(Kept)  # by network: a model may have two
    for is_needed, (packed, numbers) in zip(needed, plan(conversations, work.token_budget), strict=False):
        if not is_needed:
            for each in kept.values():
                each.skip(packed)
            continue

        def read(network: ReadableNetwork, _: Any, packed: Packed = packed) -> tuple[Tensor, list[list[int]], int]:
            return read_packed(network, packed, kept[id(network)])

        completed = [conversations[number] for number in numbers]
        yield _Batch([members[number] for number in numbers], completed, len(packed.ids), read)


def _separate_batches(tokenized: Sequence[Tokenized], block: Conversations, work: Work) -> Iterator[_Batch]:
    """Batches that share nothing; the most expensive come first. A group is split only if it exceeds the budget."""
    padded = work.strategy == "padded"
    units: list[tuple[int, list[tuple[int, int]]]] = []
    for group, places in block.items():
        for number, place in enumerate(places):
            length = len(tokenized[group].conversations[place].ids)
            if number and not padded and units[-1][0] + length <= work.token_budget:
                units[-1] = (units[-1][0] + length, [*units[-1][1], (group, place)])
            else:
                units.append((length, [(group, place)]))
    batches: list[tuple[int, list[tuple[int, int]]]] = []
    for cost, unit in sorted(units, key=lambda costed: costed[0]):
        used, batch = batches[-1] if batches else (0, [])
        # Padding makes each row as expensive as the longest, which in ascending order is the newest.
        total = cost * (len(batch) + 1) if padded else used + cost
        if not batch or total > work.token_budget:
            batches.append((cost, unit))
        else:
            batches[-1] = (total, [*batch, *unit])
    read = _read_padded if padded else _read_exactly
    for cost, members in reversed(batches):
        conversations = [tokenized[group].conversations[place] for group, place in members]
        yield _Batch(members, conversations, cost, read)


def _read_padded(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]]) -> tuple[Tensor, list[list[int]], int]:
    return read_padded(network, [tokens for group in groups for tokens in group])


def _read_exactly(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]]) -> tuple[Tensor, list[list[int]], int]:
    return read_packed(network, pack(groups, "exact"))


def _halve_budget(error: Exception, batch: _Batch, work: Work, ids: Sequence[str]) -> None:
    """Raise errors that are not about memory, and `LocalError` for a single response; count all others."""
    if not is_out_of_memory(error):
        raise error
    # A batch of one conversation may inherit its beginning, or begin another: a smaller budget helps.
    if len(batch.members) == 1 and batch.tokens == len(batch.conversations[0].ids):
        raise LocalError(
            f"A conversation of {batch.tokens:,} tokens (id {ids[batch.members[0][0]]}) does not fit into memory; "
            "lower `max_length=...` and set `on_overflow=...`, or choose a smaller `dtype=...`."
        ) from None
    work.token_budget = max(1, min(work.token_budget, batch.tokens) // 2)
    work.out_of_memory += 1
    log_status(f"A batch of {batch.tokens:,} tokens ran out of memory; continuing with {work.token_budget:,} a batch.")
