"""The content of tables, apart from how it is stored: canonical rows and their digests."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pluralbench_runs import canonical_json
from pluralbench_tables import TableFileError, read_parquet
from polars.datatypes import DataTypeClass

from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import table_path

ROWS_AT_ONCE = 256


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


def canonical_rows(frame: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Each row's id as text and its canonical JSON, a few rows in memory at a time.

    They come in the order of the ids, by code point for strings and by size for numbers.

    Raises `ReleaseError` for a value that JSON has no word for, such as a date or NaN.
    """
    for name, kind in frame.schema.items():
        if not _json_carries(kind):  # polars itself panics where it makes Python's of some of these
            raise ReleaseError(f"The column `{name}` is of the type {kind}, which JSON cannot carry.")
    frame = frame.rechunk()  # a few rows of a list in pieces cost as much as all rows of it
    order = frame["id"].arg_sort()
    for start in range(0, len(order), ROWS_AT_ONCE):  # sorting the frame itself would double it
        for row in frame[order[start : start + ROWS_AT_ONCE]].iter_rows(named=True):
            try:
                yield str(row["id"]), canonical_json(row)
            except (ValueError, OverflowError) as error:
                raise ReleaseError(
                    f"The row of id {row['id']!r} holds a value that JSON cannot carry ({error})."
                ) from None


def _json_carries(kind: pl.DataType | DataTypeClass) -> bool:
    if isinstance(kind, pl.List | pl.Array):
        return _json_carries(kind.inner)
    if isinstance(kind, pl.Struct):
        return all(_json_carries(field.dtype) for field in kind.fields)
    return not isinstance(kind, pl.Decimal) and (
        kind.is_numeric() or isinstance(kind, pl.Boolean | pl.String | pl.Null | pl.Categorical | pl.Enum)
    )


def digests(frame: pl.DataFrame) -> tuple[str, dict[str, str]]:
    """The content digest of the rows and the digest of each by its id, in the order of the ids.

    The content digest is the SHA-256 over the canonical JSON array of the rows sorted by id, the promise that a
    release makes: it depends on neither the order of the rows nor the library that stored them.
    """
    total = hashlib.sha256(b"[")
    rows: dict[str, str] = {}
    for row_id, row in canonical_rows(frame):
        total.update(b"," + row if rows else row)
        rows[row_id] = hashlib.sha256(row).hexdigest()
    total.update(b"]")
    return total.hexdigest(), rows


def content_digest(frame: pl.DataFrame) -> str:
    """The content digest of the rows (see `digests`)."""
    return digests(frame)[0]


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
