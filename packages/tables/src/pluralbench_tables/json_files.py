"""JSON and JSON lines, held to limits that keep whatever reads them next from stumbling."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import Json, UserError, atomic_write

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import (
    CELLS,
    DEPTH,
    JSON_MEMORY_BYTES,
    LINE_CHARACTERS,
    TEXT_CHARACTERS,
    estimate_parsed_bytes,
    length_error,
)
from pluralbench_tables.text_files import read_text

SURROGATE = re.compile("[\\ud800-\\udfff]")
INTEGERS = range(-(2**63), 2**63)
TOO_DEEP = f"this is nested deeper than {DEPTH} levels, which are as many as are read"
LARGE_INTEGER = "an integer beyond 64 bits stands here; write it as a text"


def parse_json(text: str, where: str, error: type[UserError] = TableFileError) -> Json:
    """The value of a JSON text.

    Raises `error`, a sentence that begins with `where`, for what is no JSON (also `NaN`, and an object with the same
    key twice) and for what not every reader takes: integers beyond 64 bits, numbers too large, halves of characters,
    texts longer than `limits.TEXT_CHARACTERS`, values nested deeper than `limits.DEPTH`.
    """
    value = _parsed(text, where, error)
    _check(value, where, error)
    return value


def _parsed(text: str, where: str, error: type[UserError]) -> Json:
    if sum(map(text.count, ",[{")) > CELLS:
        raise error(f"{where}: this has more than {CELLS:,} values, which are as many as are read.")
    if estimate_parsed_bytes(text) > JSON_MEMORY_BYTES:
        raise error(f"{where}: its values take more than {JSON_MEMORY_BYTES:,} bytes of memory; split it.")
    try:
        value: Json = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno:,}, column {fault.colno:,}" if "\n" in text else f"column {fault.colno:,}"
        raise error(f"{where}: this is not JSON ({fault.msg} at {place}).") from None
    except RecursionError:
        raise error(f"{where}: {TOO_DEEP}.") from None
    except ValueError as fault:
        said = LARGE_INTEGER if "integer string conversion" in str(fault) else fault
        raise error(f"{where}: {said}.") from None
    return value


def _check(value: Json, where: str, error: type[UserError]) -> None:
    try:
        for level in levels(value):
            for one in level:
                _check_one(one)
    except _LongText as fault:
        raise error(f"{where}{_way_to(fault.text, value)} has a text of {length_error(len(fault.text))}.") from None
    except ValueError as fault:
        raise error(f"{where}: {fault}.") from None


class _LongText(Exception):
    """A text that is longer than `limits.TEXT_CHARACTERS`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


def _way_to(text: str, value: Json) -> str:
    """Where a text stands within a value, by the row of a list and the key of an object: `, row 3: `KEY``."""
    row = ""
    if isinstance(value, list):
        number = next(number for number, inner in enumerate(value) if _holds(inner, text))
        row, value = f", row {number + 1:,}", value[number]
    key = next((key for key, inner in value.items() if _holds(inner, text)), "") if isinstance(value, dict) else ""
    return f"{row}: `{key[:50]}`" if key else f"{row}: this"


def _holds(value: Json, text: str) -> bool:
    return any(one is text for level in levels(value) for one in level)


def read_json(path: Path, error: type[UserError] = TableFileError) -> Json:
    """The value of a JSON file. Raises `error`, see `parse_json`."""
    return parse_json(read_text(path, error), str(path), error)


def read_jsonl(path: Path, error: type[UserError] = TableFileError) -> list[dict[str, Any]]:
    """The object of each line that is not blank. Raises `error` for a line that is no JSON object, and for no line."""
    return _some([row for _, row in _lines(path, read_text(path, error), error)], path, error)


def read_objects(path: Path, error: type[UserError] = TableFileError) -> list[dict[str, Any]]:
    """The rows of a file that is an array of objects, or that has an object a line. Raises `error`."""
    text = read_text(path, error)
    if not text.lstrip().startswith("["):
        return _some([row for _, row in _lines(path, text, error)], path, error)
    rows: list[dict[str, Any]] = []
    values = _parsed(text, str(path), error)
    for number, row in enumerate(values if isinstance(values, list) else [values], start=1):
        if not isinstance(row, dict):
            raise error(f"{path} is no table: row {number:,} is not a JSON object.")
        _check(row, f"{path}, row {number:,}", error)
        rows.append(row)
    return _some(rows, path, error)


def write_jsonl(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write objects, one a line, characters as they are. A failure leaves the file that was there."""
    with atomic_write(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _lines(path: Path, text: str, error: type[UserError]) -> Iterator[tuple[int, dict[str, Any]]]:
    # Only "\n" ends a line: str.splitlines would also cut at separators that JSON allows inside a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number:,}"
        if len(line) > LINE_CHARACTERS:
            raise error(
                f"{where} has {len(line):,} characters, and at most {LINE_CHARACTERS:,} are read; shorten its texts, "
                "or leave it out."
            )
        row = parse_json(line, where, error)
        if not isinstance(row, dict):
            raise error(f"{where}: this is not a JSON object.")
        yield number, row


def _some(rows: list[dict[str, Any]], path: Path, error: type[UserError]) -> list[dict[str, Any]]:
    if not rows:
        raise error(f"{path} holds no rows.")
    return rows


def levels(value: Any) -> Iterator[list[Any]]:
    """The value, then the values in it, then those in them, and so on. Raises `ValueError` beyond `limits.DEPTH`."""
    level = [value]
    for _ in range(DEPTH + 1):
        yield level
        inside = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, list | dict))
        level = [inner for values in inside for inner in values]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the key {twice[:50]!r} twice")
    return found


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON; write null")


def _check_one(value: object) -> None:
    """Raise `ValueError` for a value, or a key, that `parse_json` refuses."""
    if isinstance(value, str):
        if len(value) > TEXT_CHARACTERS:
            raise _LongText(value)
        if not value.isascii() and SURROGATE.search(value):
            raise ValueError("this holds half a character (a lone surrogate); mend the text")
    elif isinstance(value, dict):
        for key in value:
            _check_one(key)
    elif isinstance(value, int) and value not in INTEGERS:
        raise ValueError(LARGE_INTEGER)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number too large to be read stands here")
