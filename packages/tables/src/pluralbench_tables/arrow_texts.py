"""Lengths of the texts in Arrow tables, at any depth of nesting."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pluralbench_runs import UserError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import TEXT_CHARACTERS, length_error

TEXTS = (pa.string(), pa.large_string())
STORED = (*TEXTS, pa.binary(), pa.large_binary())
Measure = Callable[[Any], Any]
"""Maps texts to their lengths."""


def check_texts(
    table: pa.Table | pa.RecordBatch, where: str, error: type[UserError] = TableFileError, *, rows_before: int = 0
) -> None:
    """Check that no text has more than `limits.TEXT_CHARACTERS` characters.

    Args:
        table: The table.
        where: Name of the table, which begins the error's message.
        error: The type of the error.
        rows_before: Number of rows before this table; the message counts rows from 1 after them.

    Raises:
        UserError: Of the type `error`: a text is too long.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        before = rows_before
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            # A text has at most as many characters as bytes, so most arrays need no look at each text.
            if array.nbytes > TEXT_CHARACTERS and _longest(array, pc.binary_length) > TEXT_CHARACTERS:
                _check_characters(array, f"`{name}`", where, error, before)
            before += len(array)


def text_bytes(array: pa.Array) -> int:
    """Sum the bytes of the texts in an array; texts of a dictionary count as often as they are used."""
    return sum(pc.sum(lengths).as_py() or 0 for lengths in _lengths(array, pc.binary_length))


def _check_characters(array: pa.Array, name: str, where: str, error: type[UserError], before: int) -> None:
    longest = _longest(array, _characters)
    if longest > TEXT_CHARACTERS:
        rows = range(len(array))
        first = bisect_left(rows, True, key=lambda end: _longest(array[: end + 1], _characters) > TEXT_CHARACTERS)
        length = _longest(array[first : first + 1], _characters)
        raise error(f"{where}, row {before + first + 1:,}: {name} has a text of {length_error(length)}.")


def _longest(array: pa.Array, measure: Measure) -> int:
    return max((pc.max(lengths).as_py() or 0 for lengths in _lengths(array, measure)), default=0)


def _lengths(array: pa.Array, measure: Measure) -> Iterator[Any]:
    """Yield the lengths of the texts in an array, separately for each field of its structs."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _lengths(array.storage, measure)
    elif pa.types.is_dictionary(kind):
        yield from (lengths.take(array.indices) for lengths in _lengths(array.dictionary, measure))
    elif pa.types.is_struct(kind):
        yield from (lengths for part in array.flatten() for lengths in _lengths(part, measure))
    elif pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        yield from _lengths(pa.ListArray.from_arrays(array.offsets, entries), measure)
    elif pa.types.is_nested(kind):
        yield from _lengths(array.flatten(), measure)
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        yield measure(array.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()))
    elif kind in STORED:
        yield measure(array)


def _characters(array: pa.Array) -> pa.Array:
    return pc.utf8_length(array) if array.type in TEXTS else pc.binary_length(array)
