"""Canonical rows of tables and their digests, independent of how the rows are stored."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pluralbench_runs import RecipeError, canonical_json
from pluralbench_tables import TableFileError, read_parquet
from polars.datatypes import DataTypeClass

from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import table_path

ROWS_AT_ONCE = 1024
WIDE_INTEGERS = {pl.Int64, pl.UInt64, pl.Int128}
MANY_DIGITS = r"\d{16}"  # in numbers beyond 2**53, which canonical JSON rejects


@dataclass(frozen=True)
class ReleaseTable:
    """The rows of one config and split.

    Attributes:
        config: Config.
        split: Split.
        frame: Rows with a unique column `id` of strings or integers.
        schema: Name of the rows' schema, a key of `pluralbench_schemas.SCHEMAS`.
    """

    config: str
    split: str
    frame: pl.DataFrame
    schema: str

    @property
    def path(self) -> str:
        """Path of the rows in a release."""
        return table_path(self.config, self.split)


def _canonical_rows(frame: pl.DataFrame) -> Iterator[tuple[pl.Series, pl.Series]]:
    """Yield ids and canonical JSON of a chunk of rows at a time, as text, sorted by id.

    Strings are sorted by code point, numbers by size. Raises `ReleaseError` for a value without a JSON form, such as a
    date or NaN.
    """
    for name, kind in frame.schema.items():
        if not all(map(_has_json_form, _leaves(kind))):  # polars panics when it converts some of these types
            raise ReleaseError(f"Column `{name}` has the type {kind}, which JSON cannot represent.")
    by_key = _sorted_keys(pl.Struct(frame.schema))
    wide = [name for name, kind in frame.schema.items() if not WIDE_INTEGERS.isdisjoint(_leaves(kind))]
    frame = frame.rechunk()  # slicing a column of several chunks costs as much as the whole column
    order = frame["id"].arg_sort()
    for start in range(0, len(order), ROWS_AT_ONCE):  # sorting the frame would double its memory
        part = frame[order[start : start + ROWS_AT_ONCE]]
        canonical = by_key is not None and not (wide and _json(part.select(wide)).str.contains(MANY_DIGITS).any())
        texts = _json(part, by_key) if canonical else pl.Series([_canonical(row) for row in part.iter_rows(named=True)])
        yield part["id"].cast(pl.String), texts


def _json(frame: pl.DataFrame, kind: pl.DataType | DataTypeClass | None = None) -> pl.Series:
    """The rows as JSON, written fast by polars, with the keys in the order of the type."""
    rows = pl.struct(pl.all())
    return frame.select((rows if kind is None else rows.cast(kind)).struct.json_encode()).to_series()


def _canonical(row: dict[str, Any]) -> str:
    try:
        return canonical_json(row).decode()
    except (RecipeError, ValueError, OverflowError) as error:
        raise ReleaseError(f"The row with id {row['id']!r} has a value that JSON cannot represent ({error}).") from None


def _leaves(kind: pl.DataType | DataTypeClass) -> Iterator[pl.DataType | DataTypeClass]:
    """The types of the values inside lists and structs."""
    if isinstance(kind, pl.List | pl.Array):
        yield from _leaves(kind.inner)
    elif isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from _leaves(field.dtype)
    else:
        yield kind


def _has_json_form(kind: pl.DataType | DataTypeClass) -> bool:
    return not isinstance(kind, pl.Decimal) and (
        kind.is_numeric() or isinstance(kind, pl.Boolean | pl.String | pl.Null | pl.Categorical | pl.Enum)
    )


def _sorted_keys(kind: pl.DataType | DataTypeClass) -> pl.DataType | DataTypeClass | None:
    """The type with its keys in the order of canonical JSON; None if polars writes its values differently.

    It does so for floats, and for non-ASCII keys, which RFC 8785 sorts by UTF-16.
    """
    if isinstance(kind, pl.List):
        inner = _sorted_keys(kind.inner)
        return inner and pl.List(inner)
    if isinstance(kind, pl.Struct):
        fields = {field.name: _sorted_keys(field.dtype) for field in sorted(kind.fields, key=lambda field: field.name)}
        canonical = all(fields.values()) and "".join(fields).isascii()
        return pl.Struct({name: inner for name, inner in fields.items() if inner}) if canonical else None
    return kind if kind.is_integer() or kind in {pl.Boolean, pl.String, pl.Null} else None


def digests(frame: pl.DataFrame) -> tuple[str, dict[str, str]]:
    """Compute the content digest and the digest of each row by its id, in the order of the ids."""
    total = hashlib.sha256(b"[")
    rows: dict[str, str] = {}
    for ids, texts in _canonical_rows(frame):
        for row_id, row in zip(ids, map(str.encode, texts), strict=True):
            total.update(b"," + row if rows else row)
            rows[row_id] = hashlib.sha256(row).hexdigest()
    total.update(b"]")
    return total.hexdigest(), rows


def content_digest(frame: pl.DataFrame) -> str:
    """Compute the SHA-256 of the canonical JSON array of the rows sorted by id.

    It does not depend on the order of the rows or on the library that stored them.
    """
    total = hashlib.sha256(b"[")
    for number, (_, texts) in enumerate(_canonical_rows(frame)):
        total.update(b"," * (number > 0) + texts.str.join(",")[0].encode())
    total.update(b"]")
    return total.hexdigest()


def read_table(path: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a Parquet file of a release.

    Args:
        path: The file.
        name: Name of the file in errors.
        columns: Columns to read. Default: all.

    Raises:
        ReleaseError: The file is not Parquet or lacks a column.
    """
    try:
        return read_parquet(path, columns)
    except TableFileError:
        raise ReleaseError(f"{name} cannot be read as Parquet.") from None


def read_rows(path: Path, name: str) -> pl.DataFrame:
    """Read a table of a release.

    Args:
        path: The file.
        name: Name of the file in errors.

    Raises:
        ReleaseError: The file is not Parquet, or a row has no id.
    """
    frame = read_table(path, name)
    if frame.schema.get("id") not in {pl.String, pl.Int64} or frame["id"].null_count():
        raise ReleaseError(f"{name} has rows without an `id`.")
    return frame


def sort_ids(ids: Iterable[str], *frames: pl.DataFrame | None) -> list[str]:
    """Sort ids, given as text, in the order of the digest: by size if those of the frames are numbers."""
    numbers = all(frame is None or frame.schema["id"] == pl.Int64 for frame in frames)
    return sorted(ids, key=int) if numbers else sorted(ids)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as Parquet with plain `string` and `list` types, which every reader maps to the same features.

    The bytes depend only on the rows and the version of pyarrow.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    table = frame.to_arrow()
    plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema])
    pq.write_table(table.cast(plain), path, compression="zstd")


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind
