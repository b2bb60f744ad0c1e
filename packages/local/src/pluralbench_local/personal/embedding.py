"""Embed items as a corpus of vectors. Each distinct text is computed once."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch
from pluralbench_rewards import Group, Work
from pluralbench_runs import atomic_write, check_file, one_line, progress
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pluralbench_local.errors import LocalError
from pluralbench_local.personal.backbones import Backbone
from pluralbench_local.personal.corpus import Corpus, Earlier
from pluralbench_local.personal.texts import BackboneRecord, Item, Remaining, TokenizedTexts, collect_texts

BACKBONE, KEYS, VECTORS = "backbone", "keys", "vectors"
KEY_BYTES = 32


class EmbeddingStore:
    """Vectors of one backbone by the keys of their texts, in a folder of safetensors files ("shards").

    A shard has `keys`, the SHA-256 of backbone and text, as uint8 of shape (n, 32), and `vectors` of shape (n, width)
    in the precision they were computed in. Its metadata names the backbone. Shards are written atomically and never
    changed, so several processes can use a store at the same time.

    Raises:
        LocalError: If the folder has vectors of another backbone, or a file that is not a complete shard.
    """

    def __init__(self, folder: Path, backbone: BackboneRecord) -> None:
        self.folder, self.backbone = folder, backbone
        self._locations: dict[bytes, tuple[Path, int]] = {}
        for path in sorted(folder.glob("*.safetensors")):
            self._add(path, _keys(path, backbone))

    def __len__(self) -> int:
        return len(self._locations)

    def __contains__(self, key: bytes) -> bool:
        return key in self._locations

    def check(self, backbone: BackboneRecord) -> None:
        """Raise `LocalError` if the store is another backbone's."""
        _check_backbone(self.folder, self.backbone, backbone)

    def read(self, keys: Sequence[bytes]) -> Tensor:
        """Return the vectors of stored keys, of shape (keys, width), in float32."""
        vectors = torch.empty(len(keys), self.backbone.width)
        by_shard: dict[Path, list[tuple[int, int]]] = {}
        for index, key in enumerate(keys):
            path, row = self._locations[key]
            by_shard.setdefault(path, []).append((index, row))
        for path, locations in by_shard.items():
            with safe_open(path, framework="pt") as shard:
                shard_vectors = shard.get_tensor(VECTORS)
            indices, rows = zip(*locations, strict=True)
            vectors[list(indices)] = shard_vectors[list(rows)].float()
        return vectors

    def write(self, keys: Sequence[bytes], vectors: Tensor) -> None:
        """Add a shard with vectors of shape (keys, width)."""
        if not keys:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        table = torch.from_numpy(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES).copy())
        # The name is unique, so that two processes never write the same shard.
        path = self.folder / f"{uuid4().hex}.safetensors"
        with atomic_write(path) as new:
            save_file({KEYS: table, VECTORS: vectors.contiguous()}, new, {BACKBONE: self.backbone.model_dump_json()})
        self._add(path, keys)

    def _add(self, path: Path, keys: Iterable[bytes]) -> None:
        for row, key in enumerate(keys):
            self._locations.setdefault(key, (path, row))


def _keys(path: Path, backbone: BackboneRecord) -> list[bytes]:
    try:
        check_file(path)
        with safe_open(path, framework="np") as shard:
            made_by = BackboneRecord.model_validate_json((shard.metadata() or {})[BACKBONE])
            keys = shard.get_tensor(KEYS)
    except (SafetensorError, OSError, KeyError, ValueError, ValidationError) as error:
        raise LocalError(
            f"{path} is not a complete shard of an embedding store ({one_line(error)}); delete it, and its vectors are "
            "computed again."
        ) from None
    _check_backbone(path.parent, made_by, backbone)
    return [row.tobytes() for row in keys]


def _check_backbone(folder: Path, made_by: BackboneRecord, backbone: BackboneRecord) -> None:
    if made_by.identity != backbone.identity:
        raise LocalError(
            f"The embedding store {folder} has vectors of {made_by}, not of {backbone}; give another folder."
        )


SHARD_VECTORS = 4096  # vectors in a shard of the store
SHARD_SECONDS = 30.0  # seconds after which a shard is written with fewer


@dataclass(frozen=True)
class EmbeddedCorpus(Corpus):
    """A corpus, and how it was embedded.

    Attributes:
        places: Index of the group of each item.
        cut: Largest number of tokens that a text of an item lost, by item.
        dropped: Why a group is not in the corpus, by index of the group.
        pairs_dropped: Number of earlier pairs that are not in the corpus.
        work: What was computed, without vectors from a store.
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
    """Embed prompts, responses, and user contexts, of which at most `posts` blocks are embedded as one text.

    The backbone's `on_overflow` applies to conversations that are too long. A user context that is too long loses its
    last blocks, then the end of the first. `cut` and `dropped` of the result record both. Vectors in the store are not
    computed again; others are saved there as they are computed.

    Raises:
        LocalError: If a text cannot be tokenized, or is too long; or if one text does not fit into memory; or if the
            store is another backbone's.
    """
    planned = plan_embedding(groups, backbone, posts)
    with progress("embedding", len(planned.row)) as meter:
        return embed_plan(planned, ranks, backbone, store, backbone.work(), meter.advance)


@dataclass(frozen=True)
class EmbeddingPlan:
    """The texts to embed: `kept` are indices of items that are not dropped, `row` rows of vectors by keys of texts."""

    items: list[Item]
    tokenized: TokenizedTexts
    kept: list[int]
    row: dict[bytes, int]


def plan_embedding(groups: Sequence[Group], backbone: Backbone, posts: int) -> EmbeddingPlan:
    """Tokenize the texts of groups, and list the distinct ones. Raises `LocalError`."""
    texts, items = collect_texts(groups, posts)
    tokenized = backbone.read(texts)
    kept = [index for index, item in enumerate(items) if item.unit not in tokenized.dropped]
    needed = dict.fromkeys(unit for index in kept for unit in items[index].units if unit not in tokenized.dropped)
    keys = dict.fromkeys(key for unit in needed for key in tokenized.keys[unit])
    return EmbeddingPlan(items, tokenized, kept, {key: number for number, key in enumerate(keys)})


def embed_plan(
    planned: EmbeddingPlan,
    ranks: Sequence[Sequence[int]],
    backbone: Backbone,
    store: EmbeddingStore | None,
    work: Work,
    advance: Callable[[], None],
) -> EmbeddedCorpus:
    """Compute the vectors of a plan; `advance` is called for each, and the counts of `work` are updated."""
    if store is not None:
        store.check(backbone.record)
    started = time.perf_counter()
    vectors = _vectors(planned, backbone.record.width, store, work, advance)
    work.seconds += time.perf_counter() - started
    items = [planned.items[index] for index in planned.kept]
    tokenized, row = planned.tokenized, planned.row
    pairs = [[unit for unit in item.earlier if unit not in tokenized.dropped] for item in items]

    def first(unit: int | None) -> int | None:
        return None if unit is None else row[tokenized.keys[unit][0]]

    return EmbeddedCorpus(
        vectors=vectors,
        ids=[item.group.id for item in items],
        persons=[_user_id(item.group) for item in items],
        query=[row[tokenized.keys[item.unit][0]] for item in items],
        responses=[[row[key] for key in tokenized.keys[item.unit][1:]] for item in items],
        rank=[ranks[index] for index in planned.kept],
        about=[first(item.context) for item in items],
        persona=[first(item.persona) for item in items],
        earlier=[[_pair([row[key] for key in tokenized.keys[unit]]) for unit in units] for units in pairs],
        places=planned.kept,
        cut=[max(tokenized.cut[unit] for unit in item.units) for item in items],
        dropped={
            index: tokenized.dropped[item.unit]
            for index, item in enumerate(planned.items)
            if item.unit in tokenized.dropped
        },
        pairs_dropped=sum(len(item.earlier) - len(units) for item, units in zip(items, pairs, strict=True)),
        work=work,
    )


def _user_id(group: Group) -> str:
    """An item without one has a user of its own."""
    return group.id if group.person is None or group.person.id is None else group.person.id


def _pair(rows: list[int]) -> Earlier:
    query, chosen, rejected = rows
    return query, chosen, rejected


def _vectors(
    planned: EmbeddingPlan, width: int, store: EmbeddingStore | None, work: Work, advance: Callable[[], None]
) -> Tensor:
    tokenized, row = planned.tokenized, planned.row
    vectors = torch.empty(len(row), width)
    stored = [key for key in row if store is not None and key in store]
    if store is not None and stored:
        vectors[[row[key] for key in stored]] = store.read(stored)
    for _ in stored:
        advance()
    missing = row.keys() - stored
    remaining: Remaining = {}
    for unit, keys in enumerate(tokenized.keys):
        for index, key in enumerate(keys):
            if key in missing:
                missing.remove(key)
                remaining.setdefault(unit, []).append(index)
    with _saving(store) as save:
        for unit, values in tokenized.vectors(remaining, work):
            for index, vector in values.items():
                key = tokenized.keys[unit][index]
                vectors[row[key]] = vector.float()
                save(key, vector)
                advance()
    return vectors


@contextmanager
def _saving(store: EmbeddingStore | None) -> Iterator[Callable[[bytes, Tensor], None]]:
    """Yield a function that saves a vector. Vectors are written in shards, the rest at the end or on an error."""
    pending: dict[bytes, Tensor] = {}
    written = time.monotonic()

    def write() -> None:
        nonlocal written
        if store is not None and pending:
            store.write(list(pending), torch.stack(list(pending.values())))
        pending.clear()
        written = time.monotonic()

    def save(key: bytes, vector: Tensor) -> None:
        pending[key] = vector
        if len(pending) >= SHARD_VECTORS or time.monotonic() - written >= SHARD_SECONDS:
            write()

    try:
        yield save
    finally:
        write()
