"""Identity of data and of random draws: canonical JSON digests and named random streams."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import rfc8785

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def canonical_json(value: Json) -> bytes:
    """Serialise `value` as canonical JSON (RFC 8785): sorted keys, shortest numbers, UTF-8.

    Raises `rfc8785.CanonicalizationError` for what JSON cannot carry (NaN, integers beyond 2**53).
    """
    return rfc8785.dumps(value)


def digest(value: Json) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stream(seed: int, *names: str | int) -> random.Random:
    """The random generator of this seed and these names.

    What it draws depends on them alone, so adding a row to a table changes no other row's draw.
    """
    return random.Random(digest([seed, *names]))  # noqa: S311 - reproducible by intent, no secret depends on it
