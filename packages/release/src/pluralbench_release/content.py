"""The content of tables, apart from how it is stored: canonical rows and their digests."""

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
WIDE = {pl.Int64, pl.UInt64, pl.Int128}
MANY_DIGITS = r"\d{16}"  # what numbers beyond 2**53 have, which canonical JSON refuses


@dataclass(frozen=True)
class ReleaseTable:
    """Rows of one config and split. They have a unique column `id`, of strings or whole numbers.

    schema: the name of the schema they keep to, a key of `pluralbench_schemas.SCHEMAS`.
    """

    config: str
    split: str
    frame: pl.DataFrame
    schema: str

    @property
    def path(self) -> str:
        """Where the rows lie in a release."""
        return table_path(self.config, self.split)


def _written(frame: pl.DataFrame) -> Iterator[tuple[pl.Series, pl.Series]]:
    """Ids and canonical JSON of some rows at a time, as text, in the order of the ids.

    That is by code point for strings and by size for numbers. Raises `ReleaseError` for a value that JSON has no word
    for, such as a date or NaN.
    """
    for name, kind in frame.schema.items():
        if not all(map(_json_carries, _leaves(kind))):  # polars itself panics where it makes Python's of some of these
            raise ReleaseError(f"The column `{name}` is of the type {kind}, which JSON cannot carry.")
    by_key = _sorted_keys(pl.Struct(frame.schema))
    wide = [name for name, kind in frame.schema.items() if not WIDE.isdisjoint(_leaves(kind))]
    frame = frame.rechunk()  # a few rows of a list in pieces cost as much as all rows of it
    order = frame["id"].arg_sort()
    for start in range(0, len(order), ROWS_AT_ONCE):  # sorting the frame itself would double it
        part = frame[order[start : start + ROWS_AT_ONCE]]
        alike = by_key is not None and not (wide and _json(part.select(wide)).str.contains(MANY_DIGITS).any())
        texts = _json(part, by_key) if alike else pl.Series([_canonical(row) for row in part.iter_rows(named=True)])
        yield part["id"].cast(pl.String), texts


def _json(frame: pl.DataFrame, kind: pl.DataType | DataTypeClass | None = None) -> pl.Series:
    """The rows as JSON by polars, which writes many at once, with the keys in the order of the type."""
    rows = pl.struct(pl.all())
    return frame.select((rows if kind is None else rows.cast(kind)).struct.json_encode()).to_series()


def _canonical(row: dict[str, Any]) -> str:
    try:
        return canonical_json(row).decode()
    except (RecipeError, ValueError, OverflowError) as error:
        raise ReleaseError(f"The row of id {row['id']!r} holds a value that JSON cannot carry ({error}).") from None


def _leaves(kind: pl.DataType | DataTypeClass) -> Iterator[pl.DataType | DataTypeClass]:
    """The types of the values in the lists and structs of a type."""
    if isinstance(kind, pl.List | pl.Array):
        yield from _leaves(kind.inner)
    elif isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from _leaves(field.dtype)
    else:
        yield kind


def _json_carries(kind: pl.DataType | DataTypeClass) -> bool:
    return not isinstance(kind, pl.Decimal) and (
        kind.is_numeric() or isinstance(kind, pl.Boolean | pl.String | pl.Null | pl.Categorical | pl.Enum)
    )


def _sorted_keys(kind: pl.DataType | DataTypeClass) -> pl.DataType | DataTypeClass | None:
    """The type with its keys in the order of canonical JSON; None where polars does not write its values as that does.

    That is so of floats, and of keys beyond ASCII, which RFC 8785 sorts by their UTF-16.
    """
    if isinstance(kind, pl.List):
        inner = _sorted_keys(kind.inner)
        return inner and pl.List(inner)
    if isinstance(kind, pl.Struct):
        fields = {field.name: _sorted_keys(field.dtype) for field in sorted(kind.fields, key=lambda field: field.name)}
        alike = all(fields.values()) and "".join(fields).isascii()
        return pl.Struct({name: inner for name, inner in fields.items() if inner}) if alike else None
    return kind if kind.is_integer() or kind in {pl.Boolean, pl.String, pl.Null} else None


def digests(frame: pl.DataFrame) -> tuple[str, dict[str, str]]:
    """The content digest of the rows and the digest of each by its id, in the order of the ids."""
    total = hashlib.sha256(b"[")
    rows: dict[str, str] = {}
    for ids, texts in _written(frame):
        for row_id, row in zip(ids, map(str.encode, texts), strict=True):
            total.update(b"," + row if rows else row)
            rows[row_id] = hashlib.sha256(row).hexdigest()
    total.update(b"]")
    return total.hexdigest(), rows


def content_digest(frame: pl.DataFrame) -> str:
    """The SHA-256 over the canonical JSON array of the rows sorted by id, the promise that a release makes.

    It depends on neither the order of the rows nor the library that stored them.
    """
    total = hashlib.sha256(b"[")
    for number, (_, texts) in enumerate(_written(frame)):
        total.update(b"," * (number > 0) + texts.str.join(",")[0].encode())
    total.update(b"]")
    return total.hexdigest()


def read_table(path: Path, shown: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of a Parquet file of a release, called `shown` in errors, of all columns or of these.

    Raises `ReleaseError` for no Parquet, or no such column.
    """
    try:
        return read_parquet(path, columns)
    except TableFileError:
        raise ReleaseError(f"{shown} cannot be read as Parquet.") from None


def read_rows(path: Path, shown: str) -> pl.DataFrame:
    """The rows of a release's table, called `shown` in errors. Raises `ReleaseError` for no Parquet or no ids."""
    frame = read_table(path, shown)
    if frame.schema.get("id") not in {pl.String, pl.Int64} or frame["id"].null_count():
        raise ReleaseError(f"{shown} has rows without an `id`.")
    return frame


def in_order(ids: Iterable[str], *frames: pl.DataFrame | None) -> list[str]:
    """Ids as text in the order of the digest: by size where those of the frames are numbers."""
    numbers = all(frame is None or frame.schema["id"] == pl.Int64 for frame in frames)
    return sorted(ids, key=int) if numbers else sorted(ids)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as Parquet with plain `string` and `list` types, so that every reader sees the same features.

    The bytes depend only on the rows and on pyarrow's version.
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
