"""A folder of vectors that were computed before, kept by text and backbone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch
from pluralbench_runs import atomic_write, one_line
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pluralbench_local.errors import ModelError
from pluralbench_local.personal.contract import BackboneRecord

BACKBONE, KEYS, VECTORS = "backbone", "keys", "vectors"
KEY_BYTES = 32


class EmbeddingStore:
    """Vectors of one backbone by the keys of their texts, in a folder of safetensors files ("shards").

    A shard holds `keys` [n, 32], uint8, the SHA-256 of backbone and text, and `vectors` [n, width] in the type they
    were computed in; its metadata names the backbone. Shards are written whole or not at all and never changed, so that
    several processes may use a store at the same time.

    Raises `ModelError` for a folder with vectors of another backbone, and for a file that is no whole shard.
    """

    def __init__(self, folder: Path, backbone: BackboneRecord) -> None:
        self.folder, self.backbone = folder, backbone
        self._where: dict[bytes, tuple[Path, int]] = {}
        for path in sorted(folder.glob("*.safetensors")):
            self._add(path, _keys(path, backbone))

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, key: bytes) -> bool:
        return key in self._where

    def check(self, backbone: BackboneRecord) -> None:
        """Raise `ModelError` where the store is another backbone's."""
        _same(self.folder, self.backbone, backbone)

    def read(self, keys: Sequence[bytes]) -> Tensor:
        """The vectors [keys, width] of keys that are in the store, in float32."""
        vectors = torch.empty(len(keys), self.backbone.width)
        rows: dict[Path, list[tuple[int, int]]] = {}
        for place, key in enumerate(keys):
            path, row = self._where[key]
            rows.setdefault(path, []).append((place, row))
        for path, several in rows.items():
            with safe_open(path, framework="pt") as shard:
                held = shard.get_tensor(VECTORS)
            places, held_rows = zip(*several, strict=True)
            vectors[list(places)] = held[list(held_rows)].float()
        return vectors

    def write(self, keys: Sequence[bytes], vectors: Tensor) -> None:
        """Add a shard. vectors: [keys, width]."""
        if not keys:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        table = torch.from_numpy(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES).copy())
        # A name of its own, so that two processes do not write the same one; the place is taken at once or not at all.
        path = self.folder / f"{uuid4().hex}.safetensors"
        with atomic_write(path) as new:
            save_file({KEYS: table, VECTORS: vectors.contiguous()}, new, {BACKBONE: self.backbone.model_dump_json()})
        self._add(path, keys)

    def _add(self, path: Path, keys: Iterable[bytes]) -> None:
        for row, key in enumerate(keys):
            self._where.setdefault(key, (path, row))


def _keys(path: Path, backbone: BackboneRecord) -> list[bytes]:
    """The keys of a shard. Raises `ModelError`."""
    try:
        with safe_open(path, framework="np") as shard:
            made_by = BackboneRecord.model_validate_json((shard.metadata() or {})[BACKBONE])
            keys = shard.get_tensor(KEYS)
            shape = shard.get_slice(VECTORS).get_shape()
        if keys.dtype != np.uint8 or keys.shape != (shape[0], KEY_BYTES) or shape[1:] != [made_by.width]:
            raise ValueError(f"keys of shape {keys.shape}, vectors of {tuple(shape)}")  # noqa: TRY301 - said below
    except (SafetensorError, OSError, KeyError, ValueError, ValidationError) as error:
        raise ModelError(
            f"{path} is no whole file of an embedding store ({one_line(error)}); delete it, and what it held is "
            "computed again."
        ) from None
    _same(path.parent, made_by, backbone)
    return [row.tobytes() for row in keys]


def _same(folder: Path, made_by: BackboneRecord, backbone: BackboneRecord) -> None:
    if made_by.identity != backbone.identity:
        raise ModelError(
            f"The embedding store {folder} holds vectors of {made_by}, not of {backbone}; give another folder."
        )
