"""A folder of computed vectors, by text and backbone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch
from pluralbench_runs import atomic_write, check_file, one_line
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pluralbench_local.errors import LocalError
from pluralbench_local.personal.contract import BackboneRecord

BACKBONE, KEYS, VECTORS = "backbone", "keys", "vectors"
KEY_BYTES = 32


class EmbeddingStore:
    """Vectors of one backbone by the keys of their texts, in a folder of safetensors files ("shards").

    A shard has `keys`, the SHA-256 of backbone and text, as uint8 of shape (n, 32), and `vectors` of shape (n, width)
    in the precision they were computed in. Its metadata names the backbone. Shards are written atomically and never
    changed, so several processes can use a store at the same time.

    Args:
        folder: The folder.
        backbone: The backbone.

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
    """The keys of a shard. Raises `LocalError`."""
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
