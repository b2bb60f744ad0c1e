"""Strict readers of JSON and JSON Lines, within limits that other readers can handle."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import Json, UserError, atomic_write

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import DEPTH, JSON_MEMORY_BYTES, estimate_parsed_bytes
from pluralbench_tables.text_files import read_text

SURROGATE = re.compile("[\\ud800-\\udfff]")
INTEGERS = range(-(2**63), 2**63)
TOO_DEEP = f"this is nested deeper than {DEPTH} levels, the maximum"
LARGE_INTEGER = "this has an integer beyond 64 bits; write it as a string"


def parse_json(text: str, where: str, error: type[UserError] = TableFileError) -> Json:
    """Parse JSON strictly. `where` is the name of the text, which begins the error's message.

    Raises:
        UserError: Of the type `error`: the text is not JSON, or has `NaN`, a duplicate key, an integer beyond 64 bits,
            a number that is too large, a lone surrogate, values nested deeper than `limits.DEPTH`, or values that take
            more memory than `limits.JSON_MEMORY_BYTES`.
    """
    _check_size(text, where, error)
    value = _parse(text, where, error)
    _check(value, where, error)
    return value


def _check_size(text: str, where: str, error: type[UserError]) -> None:
    if estimate_parsed_bytes(text) > JSON_MEMORY_BYTES:
        raise error(f"{where}: the values take more than {JSON_MEMORY_BYTES:,} bytes of memory; split the file.")


def _parse(text: str, where: str, error: type[UserError]) -> Json:
    try:
        value: Json = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
    except json.JSONDecodeError as cause:
        place = f"line {cause.lineno:,}, column {cause.colno:,}" if "\n" in text else f"column {cause.colno:,}"
        raise error(f"{where}: this is not JSON ({cause.msg} at {place}).") from None
    except RecursionError:
        raise error(f"{where}: {TOO_DEEP}.") from None
    except ValueError as cause:
        problem = LARGE_INTEGER if "integer string conversion" in str(cause) else cause
        raise error(f"{where}: {problem}.") from None
    return value


def _check(value: Json, where: str, error: type[UserError]) -> None:
    try:
        for level in levels(value):
            for node in level:
                _check_node(node)
    except ValueError as cause:
        raise error(f"{where}: {cause}.") from None


def read_json(path: Path, error: type[UserError] = TableFileError) -> Json:
    """Read a JSON file. Raises `error`; see `parse_json`."""
    return parse_json(read_text(path, error), str(path), error)


def read_jsonl(path: Path, error: type[UserError] = TableFileError) -> list[dict[str, Any]]:
    """Read a JSON Lines file. Raises `error` for a line that is not a JSON object, and for an empty file."""
    return _non_empty([row for _, row in _lines(path, read_text(path, error), error)], path, error)


def read_objects(path: Path, error: type[UserError] = TableFileError) -> list[dict[str, Any]]:
    """Read a JSON file that is an array of objects, or a JSON Lines file. Raises `error`."""
    text = read_text(path, error)
    if not text.lstrip().startswith("["):
        return _non_empty([row for _, row in _lines(path, text, error)], path, error)
    rows: list[dict[str, Any]] = []
    _check_size(text, str(path), error)
    values = _parse(text, str(path), error)
    for number, row in enumerate(values if isinstance(values, list) else [values], start=1):
        if not isinstance(row, dict):
            raise error(f"{path} is not a table: row {number:,} is not a JSON object.")
        _check(row, f"{path}, row {number:,}", error)
        rows.append(row)
    return _non_empty(rows, path, error)


def write_jsonl(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write a JSON Lines file with `atomic_write`, without ASCII escapes."""
    with atomic_write(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _lines(path: Path, text: str, error: type[UserError]) -> Iterator[tuple[int, dict[str, Any]]]:
    _check_size(text, str(path), error)  # of all lines together
    # Only "\n" ends a line: str.splitlines would also split at separators that JSON allows in a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number:,}"
        if line.strip() == "{":
            raise error(f"{where}: an object goes over several lines; write each on one line.")
        row = _parse(line, where, error)
        _check(row, where, error)
        if not isinstance(row, dict):
            raise error(f"{where}: this is not a JSON object.")
        yield number, row


def _non_empty(rows: list[dict[str, Any]], path: Path, error: type[UserError]) -> list[dict[str, Any]]:
    if not rows:
        raise error(f"{path} has no rows.")
    return rows


def levels(value: Any) -> Iterator[list[Any]]:
    """Yield the values at each depth of nesting. Raises `ValueError` beyond `limits.DEPTH`."""
    level = [value]
    for _ in range(DEPTH + 1):
        yield level
        children = (
            node.values() if isinstance(node, dict) else node for node in level if isinstance(node, list | dict)
        )
        level = [child for values in children for child in values]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the key {duplicate[:50]!r} twice")
    return value


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number; write null")


def _check_node(value: object) -> None:
    if isinstance(value, str):
        if not value.isascii() and SURROGATE.search(value):
            raise ValueError("this has half a character (a lone surrogate); fix the text")
    elif isinstance(value, dict):
        for key in value:
            _check_node(key)
    elif isinstance(value, int) and value not in INTEGERS:
        raise ValueError(LARGE_INTEGER)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("this has a number that is too large")
