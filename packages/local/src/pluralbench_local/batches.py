"""Batches of conversations within a budget of tokens, which shrinks when memory runs out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from pluralbench_rewards import Group, Mode, OnScored, Overflow, Scored, Work
from pluralbench_runs import progress
from torch import Tensor

from pluralbench_local.conversations import Template, Tokenized, identical_renderings, tokenize
from pluralbench_local.errors import DeviceError
from pluralbench_local.network import ReadableNetwork, read_packed, read_padded
from pluralbench_local.packing import ROWS_FOR_A_TOKEN, Tokens, common_prefix

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
Read = Callable[[ReadableNetwork, Sequence[Sequence[Tokens]]], tuple[Tensor, list[list[int]], int]]
T = TypeVar("T")
Compute = Callable[[Sequence[Sequence[Tokens]], Read], tuple[Sequence[T], int]]
"""From conversations by group, and the way to read a network, to a value for each, and how many tokens it took."""


class Tally:
    """Groups in tokens, and their scores as they come. Responses that are the same to the last token are scored once.

    known: scores of groups that are not scored again. twins: of each group to score, by the first response of each kind
    those that are the same in tokens.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        template: Template,
        limit: int,
        on_overflow: Overflow,
        known: Mapping[int, list[float]],
    ) -> None:
        self.tokenized = tokenize(groups, template, limit, on_overflow)
        self._alike = identical_renderings(groups, self.tokenized)
        kept = [place for place, result in enumerate(self.tokenized) if not result.dropped]
        self.known = {place: list(known[place]) for place in kept if place in known}
        self.twins = {place: _twins(self.tokenized[place]) for place in kept if place not in known}
        self._scores = [dict(enumerate(self.known.get(place, ()))) for place in range(len(groups))]

    @contextmanager
    def taking(self, on_scored: OnScored | None) -> Iterator[Callable[[int, Mapping[int, float]], None]]:
        """A function that takes scores of a group, by the first responses of a kind; `on_scored` gets whole groups."""
        with progress("scoring", len(self.twins)) as meter:

            def take(place: int, values: Mapping[int, float]) -> None:
                own = self._scores[place]
                for first, value in values.items():
                    own |= dict.fromkeys(self.twins[place][first], value)
                if len(own) == len(self.tokenized[place].conversations):
                    meter.advance()
                    if on_scored is not None:
                        on_scored(place, _in_order(own))

            yield take

    def scored(self, **further: Any) -> Scored:
        """All scores, with what tokenizing showed and these `further` fields."""
        return Scored(
            scores=[_in_order(own) for own in self._scores],
            tokens=[[len(tokens.ids) for tokens in result.conversations] for result in self.tokenized],
            cut=[result.cut for result in self.tokenized],
            dropped={place: result.dropped for place, result in enumerate(self.tokenized) if result.dropped},
            alike=self._alike,
            **further,
        )


def _in_order(values: Mapping[int, float]) -> list[float]:
    return [values[response] for response in range(len(values))]


@dataclass(frozen=True)
class _Unit:
    """Conversations of one group that go into the same batch. cost: tokens that are computed for them."""

    group: int
    places: list[int]
    conversations: list[Tokens]
    cost: int


def in_batches(
    compute: Compute[T], tokenized: Sequence[Tokenized], left: dict[int, list[int]], work: Work, ids: Sequence[str]
) -> Iterator[tuple[int, dict[int, T]]]:
    """The values of what is `left`, as they come: a group, and values by the place of the conversation in it.

    left: conversations to compute, by group; they are removed once they are computed. ids: of the groups.
    Raises `DeviceError` when one conversation does not fit into memory.
    """
    for group, places in left.items():
        conversations = tokenized[group].conversations
        work.conversations += len(conversations)
        work.unique_tokens += _cost([conversations[place] for place in places], "fast")
    batches = _plan(tokenized, left, work)
    while batches:
        batch = batches.pop()
        try:
            with torch.inference_mode():
                values, computed = compute([unit.conversations for unit in batch], _reader(work))
        except (RuntimeError, MemoryError) as error:
            work.token_budget = _smaller(error, batch, work, ids)
            batches = _plan(tokenized, left, work)
            continue
        work.batches += 1
        work.computed_tokens += computed
        following = iter(values)
        for unit in batch:
            left[unit.group] = [place for place in left[unit.group] if place not in unit.places]
            yield unit.group, dict(zip(unit.places, islice(following, len(unit.places)), strict=True))


def _twins(tokenized: Tokenized) -> dict[int, list[int]]:
    """By the first of each kind, the conversations that are the same in tokens."""
    first: dict[bytes, int] = {}
    alike: dict[int, list[int]] = {}
    for response, tokens in enumerate(tokenized.conversations):
        alike.setdefault(first.setdefault(tokens.ids.tobytes(), response), []).append(response)
    return alike


def _plan(tokenized: Sequence[Tokenized], left: dict[int, list[int]], work: Work) -> list[list[_Unit]]:
    """Batches of at most the budget's tokens (or of one response), the dearest last, where they are taken from."""
    units = [unit for group, responses in left.items() for unit in _units(tokenized[group], group, responses, work)]
    if work.strategy != "fast":
        return [batch for _, batch in _filled(sorted(units, key=lambda unit: unit.cost), work)]
    # Prompts that begin alike become neighbours, so that a batch computes their beginning once.
    units.sort(key=lambda unit: unit.conversations[0].ids.tobytes())
    return [batch for _, batch in sorted(_filled(units, work), key=lambda filled: filled[0])]


def _filled(units: Sequence[_Unit], work: Work) -> list[tuple[int, list[_Unit]]]:
    """Batches in the order of their units, each with its cost in tokens."""
    batches: list[tuple[int, list[_Unit]]] = []
    for unit in units:
        taken, batch = batches[-1] if batches else (0, [])
        # Padding makes each row as dear as the longest, which in ascending order is the newest.
        cost = unit.cost * (len(batch) + 1) if work.strategy == "padded" else taken + _further(unit, batch, work)
        if not batch or cost > work.token_budget:
            batches.append((unit.cost, [unit]))
        else:
            batches[-1] = (cost, [*batch, unit])
    return batches


def _further(unit: _Unit, batch: Sequence[_Unit], work: Work) -> int:
    """The tokens that a unit adds to a batch: without the beginning of its last unit, if `pack` shares that."""
    if work.strategy != "fast" or not batch:
        return unit.cost
    shared = common_prefix([batch[-1].conversations[0].ids, unit.conversations[0].ids])
    return unit.cost - shared if shared * ROWS_FOR_A_TOKEN >= unit.cost else unit.cost


def _units(tokenized: Tokenized, group: int, responses: list[int], work: Work) -> list[_Unit]:
    """The responses of a group together as far as the budget allows; each by itself where rows are padded."""
    conversations = tokenized.conversations
    parts: list[list[int]] = []
    for response in responses:
        larger = [*parts[-1], response] if parts else []
        if (
            not larger
            or work.strategy == "padded"
            or _cost([conversations[r] for r in larger], work.strategy) > work.token_budget
        ):
            parts.append([response])
        else:
            parts[-1] = larger
    return [
        _Unit(group, part, chosen := [conversations[r] for r in part], _cost(chosen, work.strategy)) for part in parts
    ]


def _cost(conversations: Sequence[Tokens], strategy: str) -> int:
    total = sum(len(tokens.ids) for tokens in conversations)
    if strategy != "fast" or len(conversations) == 1:
        return total
    return total - (len(conversations) - 1) * common_prefix([tokens.ids for tokens in conversations])


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory did not suffice."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


def _reader(work: Work) -> Read:
    if work.strategy == "padded":
        return lambda network, groups: read_padded(network, [tokens for group in groups for tokens in group])
    mode: Mode = "fast" if work.strategy == "fast" else "exact"
    return lambda network, groups: read_packed(network, groups, mode)


def _smaller(error: Exception, batch: Sequence[_Unit], work: Work, ids: Sequence[str]) -> int:
    """A budget of half the tokens. Raises `DeviceError` when one response alone was too much, or what was no lack
    of memory."""
    if not is_out_of_memory(error):
        raise error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(batch) == 1 and len(batch[0].places) == 1:
        raise DeviceError(
            f"One conversation of {batch[0].cost:,} tokens (id {ids[batch[0].group]}) does not fit into memory; "
            "lower `max_length` with `on_overflow`, choose a smaller `dtype`, or another device."
        ) from None
    return max(1, min(work.token_budget, sum(unit.cost for unit in batch)) // 2)
