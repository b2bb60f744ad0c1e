"""Canonical rows of tables and their digests, independent of how the rows are stored."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pluralbench_runs import RecipeError, canonical_json
from pluralbench_tables import TableFileError, read_parquet

from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import table_path

ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class ReleaseTable:
    """The rows of one config and split.

    Attributes:
        config: Config.
        split: Split.
        frame: Rows with a unique column `id` of strings or integers.
        schema: Name of the rows' schema, a key of `pluralbench_schemas.SCHEMAS`.
        scored: Whether models are scored on the rows and the result enters the benchmark's overall number.
    """

    config: str
    split: str
    frame: pl.DataFrame
    schema: str
    scored: bool = False

    @property
    def path(self) -> str:
        """Path of the rows in a release."""
        return table_path(self.config, self.split)


def _canonical_rows(frame: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the canonical JSON of each row, sorted by id: strings by code point, numbers by size.

    Raises `ReleaseError` for a value without a JSON form, such as a date or NaN.
    """
    frame = frame.rechunk()  # slicing a column of several chunks costs as much as the whole column
    order = frame["id"].arg_sort()
    for start in range(0, len(order), ROWS_AT_ONCE):  # sorting the frame would double its memory
        for row in frame[order[start : start + ROWS_AT_ONCE]].iter_rows(named=True):
            try:
                yield str(row["id"]), canonical_json(row)
            except (RecipeError, ValueError, OverflowError) as error:
                raise ReleaseError(
                    f"The row with id {row['id']!r} has a value that JSON cannot represent ({error})."
                ) from None


def digests(frame: pl.DataFrame) -> tuple[str, dict[str, str]]:
    """Compute the content digest and the digest of each row by its id, in the order of the ids."""
    total = hashlib.sha256(b"[")
    rows: dict[str, str] = {}
    for row_id, row in _canonical_rows(frame):
        total.update(b"," + row if rows else row)
        rows[row_id] = hashlib.sha256(row).hexdigest()
    total.update(b"]")
    return total.hexdigest(), rows


def content_digest(frame: pl.DataFrame) -> str:
    """Compute the SHA-256 of the canonical JSON array of the rows sorted by id.

    It does not depend on the order of the rows or on the library that stored them.
    """
    return digests(frame)[0]


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
