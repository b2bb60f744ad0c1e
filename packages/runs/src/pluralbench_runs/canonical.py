"""Identity of data and of random draws: canonical JSON digests and named random streams."""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson
import rfc8785

from pluralbench_runs.errors import RecipeError, one_line
from pluralbench_runs.regular_files import open_file

SCALARS = frozenset((str, int, bool, type(None)))  # and no float

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def canonical_json(value: Json) -> bytes:
    """Serialise `value` as canonical JSON (RFC 8785): sorted keys, shortest numbers, UTF-8.

    Raises `RecipeError` for integers beyond 2**53, which people give as seeds and limits, and
    `rfc8785.CanonicalizationError` for what else JSON cannot carry, such as NaN.
    """
    try:
        return _canonical(value)
    except rfc8785.IntegerDomainError as error:
        raise RecipeError(
            f"{one_line(error)}: a number beyond 2**53 is not kept exactly; give a smaller one."
        ) from None


def _canonical(value: Json) -> bytes:
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except orjson.JSONEncodeError:
        return rfc8785.dumps(value)  # which names what is wrong, or takes it
    return written if _written_alike(value) else rfc8785.dumps(value)


def _written_alike(value: Json) -> bool:
    """Whether orjson, which is native, writes a value as RFC 8785 has it.

    It does but for floats, and for keys beyond ASCII, which RFC 8785 sorts by their UTF-16. Of other types, such as
    dates, which orjson writes and JSON has no word for, rfc8785 speaks.
    """
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        inner: Iterable[object]
        if type(one) is dict:
            if not all(type(key) is str and key.isascii() for key in one):
                return False
            inner = one.values()
        elif type(one) is list or type(one) is tuple:
            inner = one
        elif type(one) in SCALARS:
            continue
        else:
            return False
        if not SCALARS.issuperset(map(type, inner)):
            waiting.extend(inner)
    return True


def digest(value: Json) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rng_for(seed: int, *names: str | int) -> random.Random:
    """The random generator of this seed and these names.

    What it draws depends on them alone, so adding a row to a table changes no other row's draw.
    """
    return random.Random(digest([seed, *names]))  # noqa: S311 - reproducible by intent, no secret depends on it
