"""From items to a corpus of vectors, each different text computed once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from pluralbench_rewards import Group, Work
from pluralbench_runs import progress
from torch import Tensor

from pluralbench_local.personal.contract import Backbone
from pluralbench_local.personal.points import Corpus, Earlier
from pluralbench_local.personal.store import EmbeddingStore
from pluralbench_local.personal.texts import Item, Left, TokenizedTexts, collect_texts

KEPT_AT_ONCE = 4096  # vectors that are written to the store in one shard
KEPT_AFTER = 30.0  # seconds after which fewer are


@dataclass(frozen=True)
class EmbeddedCorpus(Corpus):
    """A corpus, and what embedding took.

    places: of each item, the place of its group. cut: of each item, the most tokens that one of its texts lost.
    dropped: by the place of a group, why it is not in the corpus. pairs_dropped: earlier pairs that are not.
    work: what was computed; what came from a store is not in it.
    """

    places: Sequence[int] = ()
    cut: Sequence[int] = ()
    dropped: Mapping[int, str] = field(default_factory=dict)
    pairs_dropped: int = 0
    work: Work | None = None


def embed(
    groups: Sequence[Group],
    ranks: Sequence[Sequence[int]],
    backbone: Backbone,
    *,
    posts: int,
    store: EmbeddingStore | None = None,
) -> EmbeddedCorpus:
    """Embed prompts, responses, and what is told of the persons.

    ranks: of each group's responses, lower is better, ties share a number. posts: the most blocks of a group's context,
    which are embedded as one text. store: where vectors are kept as they come; what is there is not computed again.

    What is longer than the backbone's limit: a conversation is dealt with as the backbone's `on_overflow` says; of what
    is told the last blocks go, then the end of the first. `cut` and `dropped` of the result tell of each.
    Raises `ConversationError`, `DeviceError`, and `ModelError` for the store of another backbone.
    """
    planned = plan(groups, backbone, posts)
    with progress("embedding", len(planned.row)) as meter:
        return embed_plan(planned, ranks, backbone, store, backbone.work(), meter.advance)


@dataclass(frozen=True)
class EmbeddingPlan:
    """What is to be embedded of some items. kept: places of items that are not dropped. row: of each text's vector."""

    items: list[Item]
    reading: TokenizedTexts
    kept: list[int]
    row: dict[bytes, int]


def plan(groups: Sequence[Group], backbone: Backbone, posts: int) -> EmbeddingPlan:
    """Read the texts of items. Raises `ConversationError`."""
    texts, items = collect_texts(groups, posts)
    reading = backbone.read(texts)
    kept = [place for place, item in enumerate(items) if item.unit not in reading.dropped]
    needed = dict.fromkeys(unit for place in kept for unit in items[place].units if unit not in reading.dropped)
    keys = dict.fromkeys(key for unit in needed for key in reading.keys[unit])
    return EmbeddingPlan(items, reading, kept, {key: number for number, key in enumerate(keys)})


def embed_plan(
    planned: EmbeddingPlan,
    ranks: Sequence[Sequence[int]],
    backbone: Backbone,
    store: EmbeddingStore | None,
    work: Work,
    advance: Callable[[], None],
) -> EmbeddedCorpus:
    """The corpus of what was planned. advance: called for each vector."""
    if store is not None:
        store.check(backbone.record)
    started = time.perf_counter()
    vectors = _vectors(planned, backbone.record.width, store, work, advance)
    work.seconds += time.perf_counter() - started
    items = [planned.items[place] for place in planned.kept]
    reading, row = planned.reading, planned.row
    pairs = [[unit for unit in item.earlier if unit not in reading.dropped] for item in items]

    def first(unit: int | None) -> int | None:
        return None if unit is None else row[reading.keys[unit][0]]

    return EmbeddedCorpus(
        vectors=vectors,
        ids=[item.group.id for item in items],
        persons=[_person(item.group) for item in items],
        query=[row[reading.keys[item.unit][0]] for item in items],
        responses=[[row[key] for key in reading.keys[item.unit][1:]] for item in items],
        rank=[ranks[place] for place in planned.kept],
        about=[first(item.told) for item in items],
        persona=[first(item.persona) for item in items],
        earlier=[[_pair([row[key] for key in reading.keys[unit]]) for unit in units] for units in pairs],
        places=planned.kept,
        cut=[max(reading.cut[unit] for unit in item.units) for item in items],
        dropped={
            place: reading.dropped[item.unit]
            for place, item in enumerate(planned.items)
            if item.unit in reading.dropped
        },
        pairs_dropped=sum(len(item.earlier) - len(units) for item, units in zip(items, pairs, strict=True)),
        work=work,
    )


def _person(group: Group) -> str:
    """Who asks; an item of nobody is somebody's of its own."""
    return group.id if group.person is None or group.person.id is None else group.person.id


def _pair(rows: list[int]) -> Earlier:
    query, chosen, rejected = rows
    return query, chosen, rejected


def _vectors(
    planned: EmbeddingPlan, width: int, store: EmbeddingStore | None, work: Work, advance: Callable[[], None]
) -> Tensor:
    reading, row = planned.reading, planned.row
    vectors = torch.empty(len(row), width)
    found = [key for key in row if store is not None and key in store]
    if store is not None and found:
        vectors[[row[key] for key in found]] = store.read(found)
    for _ in found:
        advance()
    missing = row.keys() - found
    left: Left = {}
    for unit, keys in enumerate(reading.keys):
        for place, key in enumerate(keys):
            if key in missing:
                missing.remove(key)
                left.setdefault(unit, []).append(place)
    with _keeping(store) as keep:
        for unit, values in reading.vectors(left, work):
            for place, vector in values.items():
                key = reading.keys[unit][place]
                vectors[row[key]] = vector.float()
                keep(key, vector)
                advance()
    return vectors


@contextmanager
def _keeping(store: EmbeddingStore | None) -> Iterator[Callable[[bytes, Tensor], None]]:
    """A function that keeps a vector: now and then, and in the end however it comes, they are written."""
    held: dict[bytes, Tensor] = {}
    written = time.monotonic()

    def write() -> None:
        nonlocal written
        if store is not None and held:
            store.write(list(held), torch.stack(list(held.values())))
        held.clear()
        written = time.monotonic()

    def keep(key: bytes, vector: Tensor) -> None:
        held[key] = vector
        if len(held) >= KEPT_AT_ONCE or time.monotonic() - written >= KEPT_AFTER:
            write()

    try:
        yield keep
    finally:
        write()
