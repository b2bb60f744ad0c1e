"""Canonical rows of tables and their digests, independent of how the rows are stored."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pluralbench_runs import RecipeError, canonical_json
from pluralbench_tables import TableFileError, read_parquet

from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import table_path

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 4096
LARGEST = 2**53  # whole numbers from here on are not exact in JSON


@dataclass(frozen=True)
class ReleaseTable:
    """The rows of one config and split, with a unique column `id` of strings or integers.

    `schema` is a key of `pluralbench_schemas.SCHEMAS`. `scored`: models are scored on the rows, and the result enters
    the benchmark's overall number.
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


def _canonical_rows(frame: pl.DataFrame) -> Iterator[tuple[pl.Series, bytes]]:
    """Yield the ids and the canonical JSON of some rows at a time, a line each, sorted by id: strings by code point."""
    frame = frame.rechunk()  # slicing a column of several chunks costs as much as the whole column
    order = frame["id"].arg_sort()
    kind = _with_sorted_keys(pl.Struct(frame.schema))
    for start in range(0, len(order), ROWS_AT_ONCE):  # sorting the frame would double its memory
        part = frame[order[start : start + ROWS_AT_ONCE]]
        if kind is not None and all(map(_is_exact, part)):
            rows = part.select(pl.col(field.name).cast(field.dtype) for field in kind.fields).write_ndjson()
            yield part["id"], rows.encode().removesuffix(b"\n")
        else:
            yield part["id"], b"\n".join(map(_canonical_row, part.iter_rows(named=True)))


def _canonical_row(row: dict[str, Any]) -> bytes:
    try:
        return canonical_json(row)
    except (RecipeError, ValueError, OverflowError) as error:
        raise ReleaseError(f"The row with id {row['id']!r} has a value that JSON cannot represent ({error}).") from None


def _with_sorted_keys(kind: Any) -> Any:
    """Return a type with the fields of structs in order; None if polars writes its values as other JSON than ours."""
    if isinstance(kind, pl.List):
        inner = _with_sorted_keys(kind.inner)
        return inner and pl.List(inner)
    if isinstance(kind, pl.Struct):
        fields = {field.name: _with_sorted_keys(field.dtype) for field in sorted(kind.fields, key=attrgetter("name"))}
        return pl.Struct(fields) if None not in fields.values() and all(map(str.isascii, fields)) else None
    return kind if kind.is_integer() or kind in {pl.String, pl.Boolean, pl.Null} else None


def _is_exact(values: pl.Series) -> bool:
    if isinstance(values.dtype, pl.List):
        return _is_exact(values.explode())
    if isinstance(values.dtype, pl.Struct):
        return all(map(_is_exact, values.struct.unnest()))
    ends: Any = (values.min(), values.max()) if values.dtype.is_integer() else ()
    return all(abs(end or 0) < LARGEST for end in ends)


def digests(frame: pl.DataFrame) -> tuple[str, dict[str, str]]:
    """Compute the content digest and the digest of each row by its id, in the order of the ids."""
    rows: dict[str, str] = {}

    def noted() -> Iterator[bytes]:
        for ids, part in _canonical_rows(frame):
            own = (hashlib.sha256(row).hexdigest() for row in part.split(b"\n"))
            rows.update(zip(map(str, ids), own, strict=True))
            yield part

    return _digest(noted()), rows


def content_digest(frame: pl.DataFrame) -> str:
    """Compute the SHA-256 of the canonical JSON array of the rows sorted by id.

    It does not depend on the order of the rows or on the library that stored them.
    """
    return _digest(part for _, part in _canonical_rows(frame))


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256(b"[")
    for number, part in enumerate(parts):
        total.update(b"," * (number > 0) + part.replace(b"\n", b","))
    total.update(b"]")
    return total.hexdigest()


def read_table(path: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a Parquet file of a release, which errors call `name`.

    Raises:
        ReleaseError: The file is not Parquet or lacks a column.
    """
    try:
        return read_parquet(path, columns)
    except TableFileError:
        raise ReleaseError(f"{name} cannot be read as Parquet.") from None


def read_rows(path: Path, name: str) -> pl.DataFrame:
    """Read a table of a release as `read_table` does, whose rows have ids."""
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    table = frame.to_arrow()
    plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema])
    pq.write_table(table.cast(plain), path, compression="zstd")


def _plain(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind
