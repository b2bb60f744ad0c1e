"""Canonical JSON, digests, and named random generators."""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import orjson
import rfc8785
from pydantic import Field

from pluralbench_runs.errors import RecipeError, one_line
from pluralbench_runs.regular_files import open_file

SCALARS = frozenset((str, int, bool, type(None)))  # not float, which orjson writes in another form

MAX_SEED = 2**32 - 1  # of NumPy's older generator, which MinHash and the trainers of transformers seed
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
"""A seed in a recipe or a configuration."""

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def canonical_json(value: Json) -> bytes:
    """Serialize `value` as canonical JSON (RFC 8785): sorted keys, shortest numbers, UTF-8.

    Raises:
        RecipeError: The value has an integer beyond 2**53, such as a seed or a limit.
        rfc8785.CanonicalizationError: The value has something else that JSON cannot represent, such as NaN.
    """
    with suppress(orjson.JSONEncodeError):  # rfc8785 raises an error that names the value, or accepts it
        if _is_canonical_in_orjson(value):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    try:
        return rfc8785.dumps(value)
    except rfc8785.IntegerDomainError as error:
        raise RecipeError(
            f"{one_line(error)}: a number beyond 2**53 cannot be stored exactly; use a smaller one."
        ) from None


def _is_canonical_in_orjson(value: Json) -> bool:
    """Whether orjson, which is faster, gives the same bytes as RFC 8785.

    It does except for floats, for keys beyond ASCII (RFC 8785 sorts by UTF-16), and for types such as dates, which
    orjson writes and rfc8785 rejects.
    """
    stack: list[object] = [value]
    while stack:
        node = stack.pop()
        children: Iterable[object]
        if type(node) is dict:
            if not all(type(key) is str and key.isascii() for key in node):
                return False
            children = node.values()
        elif type(node) is list or type(node) is tuple:
            children = node
        elif type(node) in SCALARS:
            continue
        else:
            return False
        if not SCALARS.issuperset(map(type, children)):
            stack.extend(children)
    return True


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rng_for(seed: int, *names: str | int) -> random.Random:
    """Create a random generator for a seed and names.

    Its draws depend on these alone, so a new row in a table changes no other row's draw.
    """
    return random.Random(digest([seed, *names]))  # noqa: S311 - reproducible on purpose, and no secret depends on it
