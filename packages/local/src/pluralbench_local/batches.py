"""Batches of conversations within a budget of tokens, which shrinks when memory runs out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from pluralbench_rewards import Group, Mode, OnScored, Overflow, Scored, Work
from pluralbench_runs import log_status, progress
from torch import Tensor

from pluralbench_local.conversations import Template, Tokenized, count_bos, identical_renderings, tokenize
from pluralbench_local.errors import DeviceError
from pluralbench_local.network import ReadableNetwork, read_packed, read_padded
from pluralbench_local.packing import ROWS_FOR_A_TOKEN, Tokens, common_prefix

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
Read = Callable[[ReadableNetwork, Sequence[Sequence[Tokens]]], tuple[Tensor, list[list[int]], int]]
T = TypeVar("T")
Compute = Callable[[Sequence[Sequence[Tokens]], Read], tuple[Sequence[T], int]]
"""From conversations by group, and a way to read a network, to a value of each and the number of tokens computed."""


class ScoreTable:
    """Tokenized groups and their scores so far. Responses with the same tokens are scored once.

    Attributes:
        tokenized: The tokens of each group.
        cached: Scores of groups that are not scored again, by index of the group.
        duplicates: By index of a group to score: the responses with the same tokens, by the first of them.
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
        kept = [index for index, result in enumerate(self.tokenized) if not result.dropped]
        self.cached = {index: list(cached[index]) for index in kept if index in cached}
        self.duplicates = {index: _duplicates(self.tokenized[index]) for index in kept if index not in cached}
        self._scores = [dict(enumerate(self.cached.get(index, ()))) for index in range(len(groups))]

    @contextmanager
    def recording(self, on_scored: OnScored | None) -> Iterator[Callable[[int, Mapping[int, float]], None]]:
        """Yield a function that records scores of a group by response; completed groups go to `on_scored`."""
        done = len(self.cached)
        with progress("scoring", done + len(self.duplicates), done=done) as meter:

            def record(index: int, values: Mapping[int, float]) -> None:
                scores = self._scores[index]
                for first, value in values.items():
                    scores |= dict.fromkeys(self.duplicates[index][first], value)
                if len(scores) == len(self.tokenized[index].conversations):
                    meter.advance()
                    if on_scored is not None:
                        on_scored(index, _in_order(scores))

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
            **fields,
        )


def _in_order(values: Mapping[int, float]) -> list[float]:
    return [values[response] for response in range(len(values))]


@dataclass(frozen=True)
class _Unit:
    """Conversations of one group that go into the same batch; `cost` is the number of tokens to compute."""

    group: int
    places: list[int]
    conversations: list[Tokens]
    cost: int


def in_batches(
    compute: Compute[T], tokenized: Sequence[Tokenized], remaining: dict[int, list[int]], work: Work, ids: Sequence[str]
) -> Iterator[tuple[int, dict[int, T]]]:
    """Compute values batch by batch, with smaller batches if memory runs out.

    Args:
        compute: Computes the values of some conversations.
        tokenized: The tokens of all groups.
        remaining: Indices of the conversations to compute, by index of the group. Computed ones are removed.
        work: Strategy and budget; its counts are updated.
        ids: Ids of the groups, for errors.

    Yields:
        The index of a group, and values by the index of the conversation in it.

    Raises:
        DeviceError: If one conversation does not fit into memory.
    """
    work.conversations += sum(len(tokenized[group].conversations) for group in remaining)
    work.unique_tokens += tokens_to_compute(tokenized, remaining, "fast")
    batches = _plan_batches(tokenized, remaining, work)
    while batches:
        batch, values = batches.pop(), None
        try:
            with torch.inference_mode():
                values, computed = compute([unit.conversations for unit in batch], _reader(work))
        except (RuntimeError, MemoryError) as error:
            _halve_budget(error, batch, work, ids)
        if values is None:
            torch.cuda.empty_cache()  # only now: the error held the tensors of the failed batch
            batches = _plan_batches(tokenized, remaining, work)
            continue
        work.batches += 1
        work.computed_tokens += computed
        following = iter(values)
        for unit in batch:
            remaining[unit.group] = [place for place in remaining[unit.group] if place not in unit.places]
            yield unit.group, dict(zip(unit.places, islice(following, len(unit.places)), strict=True))


def tokens_to_compute(tokenized: Sequence[Tokenized], remaining: Mapping[int, Sequence[int]], strategy: str) -> int:
    """Count the tokens of conversations; in strategy "fast", the prefix that those of a group share counts once.

    Args:
        tokenized: The tokens of all groups.
        remaining: Indices of the conversations, by index of the group.
        strategy: See `Work`.
    """
    parts = ([tokenized[group].conversations[place] for place in places] for group, places in remaining.items())
    return sum(_cost(part, strategy) for part in parts)


def _duplicates(tokenized: Tokenized) -> dict[int, list[int]]:
    """Conversations with the same tokens, by the first of them."""
    first: dict[bytes, int] = {}
    duplicates: dict[int, list[int]] = {}
    for response, tokens in enumerate(tokenized.conversations):
        duplicates.setdefault(first.setdefault(tokens.ids.tobytes(), response), []).append(response)
    return duplicates


def _plan_batches(tokenized: Sequence[Tokenized], remaining: dict[int, list[int]], work: Work) -> list[list[_Unit]]:
    """Batches of at most `token_budget` tokens (or of one response); the most expensive come last and run first."""
    units = [
        unit for group, responses in remaining.items() for unit in _units(tokenized[group], group, responses, work)
    ]
    if work.strategy != "fast":
        return [batch for _, batch in _fill_batches(sorted(units, key=lambda unit: unit.cost), work)]
    # Prompts with a common prefix become neighbors, so that a batch computes it once.
    units.sort(key=lambda unit: unit.conversations[0].ids.tobytes())
    return [batch for _, batch in sorted(_fill_batches(units, work), key=lambda costed: costed[0])]


def _fill_batches(units: Sequence[_Unit], work: Work) -> list[tuple[int, list[_Unit]]]:
    """Batches in the order of their units, each with its cost in tokens."""
    batches: list[tuple[int, list[_Unit]]] = []
    for unit in units:
        used, batch = batches[-1] if batches else (0, [])
        # Padding makes each row as expensive as the longest, which in ascending order is the newest.
        cost = unit.cost * (len(batch) + 1) if work.strategy == "padded" else used + _added_cost(unit, batch, work)
        if not batch or cost > work.token_budget:
            batches.append((unit.cost, [unit]))
        else:
            batches[-1] = (cost, [*batch, unit])
    return batches


def _added_cost(unit: _Unit, batch: Sequence[_Unit], work: Work) -> int:
    """Tokens that a unit adds to a batch, without the prefix that `pack` shares with the last unit."""
    if work.strategy != "fast" or not batch:
        return unit.cost
    shared = common_prefix([batch[-1].conversations[0].ids, unit.conversations[0].ids])
    return unit.cost - shared if shared * ROWS_FOR_A_TOKEN >= unit.cost else unit.cost


def _units(tokenized: Tokenized, group: int, responses: list[int], work: Work) -> list[_Unit]:
    """Split the responses of a group into units that fit the budget; one response each if rows are padded."""
    conversations = tokenized.conversations
    parts: list[list[int]] = []
    for response in responses:
        extended = [*parts[-1], response] if parts else []
        if (
            not extended
            or work.strategy == "padded"
            or _cost([conversations[r] for r in extended], work.strategy) > work.token_budget
        ):
            parts.append([response])
        else:
            parts[-1] = extended
    return [
        _Unit(group, part, members := [conversations[r] for r in part], _cost(members, work.strategy)) for part in parts
    ]


def _cost(conversations: Sequence[Tokens], strategy: str) -> int:
    total = sum(len(tokens.ids) for tokens in conversations)
    if strategy != "fast" or len(conversations) == 1:
        return total
    return total - (len(conversations) - 1) * common_prefix([tokens.ids for tokens in conversations])


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error reports a lack of memory."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


def _reader(work: Work) -> Read:
    if work.strategy == "padded":
        return lambda network, groups: read_padded(network, [tokens for group in groups for tokens in group])
    mode: Mode = "fast" if work.strategy == "fast" else "exact"
    return lambda network, groups: read_packed(network, groups, mode)


def _halve_budget(error: Exception, batch: Sequence[_Unit], work: Work, ids: Sequence[str]) -> None:
    """Halve the tokens of a batch, and count that it did not fit.

    Raises `DeviceError` for a single response, and errors that are not about memory.
    """
    if not is_out_of_memory(error):
        raise error
    if len(batch) == 1 and len(batch[0].places) == 1:
        raise DeviceError(
            f"A conversation of {batch[0].cost:,} tokens (id {ids[batch[0].group]}) does not fit into memory; lower "
            "`max_length=...` and set `on_overflow=...`, or choose a smaller `dtype=...`."
        ) from None
    tokens = sum(unit.cost for unit in batch)
    work.token_budget = max(1, min(work.token_budget, tokens) // 2)
    work.out_of_memory += 1
    log_status(f"A batch of {tokens:,} tokens ran out of memory; continuing with {work.token_budget:,} a batch.")
