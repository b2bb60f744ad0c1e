"""Parquet of unknown origin.

pyarrow opens it: it checks what it reads, and refuses a schema whose depth ends the whole process in polars.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_runs import UserError, one_line
from polars.exceptions import PanicException, PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, COLUMNS, GROWTH, MEMORY_BYTES
from pluralbench_tables.text_files import check_size

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ColumnChunkMetaData, ParquetFile

BATCH = 1024  # the most rows that are unpacked before they are looked at
STEP = 100_000_000  # bytes that are
RAISED = (PolarsError, PanicException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError)


def parquet_metadata(path: Path, error: type[UserError] = TableFileError) -> dict[str, str]:
    """The texts that were written into the footer of a Parquet file, by name. Raises `error`."""
    import pyarrow as pa  # noqa: PLC0415 - half a second that text files save
    from pyarrow.parquet import read_metadata  # noqa: PLC0415 - the same

    try:
        found = read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as fault:
        raise error(f"{path} cannot be read: {one_line(fault, 300)}.") from None
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in found.items()}


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> pl.DataFrame:
    """The rows of a Parquet file, of all columns or of these, as `polars.read_parquet` has them.

    Raises `error` for what is no Parquet, is damaged, lacks one of `columns`, has a text longer than
    `limits.TEXT_CHARACTERS`, or is larger than `limits.COLUMNS`, `limits.CELLS` and `limits.MEMORY_BYTES` allow.
    """
    check_size(path, error)
    with _opened(path, columns, CELLS, error) as file:
        import pyarrow as pa  # noqa: PLC0415 - as above

        batches = list(_batches(path, file, columns, MEMORY_BYTES, error))
        table = pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
        return _frame(table if columns is None else table.select(columns))


def iter_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> Iterator[pl.DataFrame]:
    """The same rows some at a time, of a file that may be as large as the disk. Without rows it is one empty part.

    What a part takes in memory has a limit, and all of them together must be in proportion to the file (see
    `limits.GROWTH`). Raises `error` as `read_parquet` does; for what is wrong with a part only when those before it
    were given.
    """
    check_size(path, error, any_size=True)
    size = path.stat().st_size
    with _opened(path, columns, max(CELLS, size), error) as file:
        batches = _batches(path, file, columns, max(MEMORY_BYTES, GROWTH * size), error)
        for batch in batches if file.metadata.num_rows else [file.schema_arrow.empty_table()]:
            yield _frame(batch if columns is None else batch.select(columns))


def release_memory() -> None:
    """Give the memory of tables that are gone back to the system; Arrow keeps as much as all of them took."""
    from pyarrow import default_memory_pool  # noqa: PLC0415 - as above

    default_memory_pool().release_unused()


class _Refused(Exception):
    """A file that can be read, but is not."""


@contextmanager
def _opened(
    path: Path, columns: Sequence[str] | None, most_cells: int, error: type[UserError]
) -> "Iterator[ParquetFile]":
    """The file, whose metadata are as they may be. Raises `error`, also for whatever goes wrong inside."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - as above

    try:
        with ParquetFile(path) as file:
            _check_metadata(file, columns, most_cells)
            yield file
    except _Refused as fault:
        raise error(f"{path} {fault}.") from None
    except RAISED as fault:
        raise error(f"{path} cannot be read: {one_line(fault, 300)}.") from None


def _frame(table: "pa.Table | pa.RecordBatch") -> pl.DataFrame:
    table.validate(full=True)
    frame = pl.from_arrow(table, rechunk=True)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _check_metadata(file: "ParquetFile", columns: Sequence[str] | None, most_cells: int) -> None:
    names, found = file.schema_arrow.names, file.metadata
    missing = next((name for name in columns or [] if name not in names), None)
    if missing is not None:
        raise _Refused(f"has no column `{missing}`; it has {', '.join(names)}")
    if found.num_columns > COLUMNS:
        raise _Refused(f"has {found.num_columns:,} columns, and at most {COLUMNS:,} are read")
    name, times = Counter(names).most_common(1)[0] if found.num_columns else ("", 1)
    if times > 1:
        raise _Refused(f"has the column `{name}` {times} times; name every column once")
    if found.num_rows * found.num_columns > most_cells:
        raise _Refused(
            f"has {found.num_rows:,} rows of {found.num_columns:,} columns, and at most {most_cells:,} cells are "
            "read; split it"
        )


def _batches(
    path: Path, file: "ParquetFile", columns: Sequence[str] | None, most_bytes: int, error: type[UserError]
) -> "Iterator[pa.RecordBatch]":
    """The rows some at a time, no more than some `STEP` bytes unpacked before their texts are looked at."""
    from pluralbench_tables.arrow_texts import check_texts  # noqa: PLC0415 - as above

    def check_memory(size: int) -> None:
        if size > most_bytes:
            raise _Refused(f"unpacks to more than {most_bytes:,} bytes, which are as many as are read; split it")

    groups = [_chunks(file, number, columns) for number in range(file.num_row_groups)]
    sizes = _sizes(path, groups, error)
    check_memory(sum(sizes))
    rows, size = 0, 0
    for number, (chunks, expected) in enumerate(zip(groups, sizes, strict=True)):
        at_once = _rows_at_once(chunks, expected, file.metadata.row_group(number).num_rows)
        for batch in file.iter_batches(at_once, row_groups=[number], columns=None if columns is None else [*columns]):
            check_texts(batch, str(path), error, rows_before=rows)
            rows += batch.num_rows
            size += batch.nbytes
            check_memory(size)  # what the file says of itself may be wrong
            yield batch


def _chunks(file: "ParquetFile", group: int, columns: Sequence[str] | None) -> "list[ColumnChunkMetaData]":
    """What a row group says of each of its columns that is read; objects have a column for each part."""
    found = file.metadata.row_group(group)
    every = map(found.column, range(found.num_columns))
    return [
        chunk
        for chunk in every
        if columns is None or any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
    ]


def _sizes(path: Path, groups: "Sequence[list[ColumnChunkMetaData]]", error: type[UserError]) -> list[int]:
    """How many bytes each row group unpacks to.

    A text that stands often in a column may be stored once. Where such a column can unpack to more than `STEP`, it is
    read as it is stored first, its texts apart from the places where they stand.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - as above

    from pluralbench_tables.arrow_texts import check_texts, text_bytes  # noqa: PLC0415 - as above

    folded = [[chunk.path_in_schema for chunk in chunks if _may_repeat(chunk)] for chunks in groups]
    sizes = [sum(chunk.total_uncompressed_size for chunk in chunks) for chunks in groups]
    with ParquetFile(path, read_dictionary=sorted({place for places in folded for place in places})) as file:
        rows = 0
        for number, places in enumerate(folded):
            for place in places:
                table = file.read_row_group(number, columns=[place], use_threads=False)
                check_texts(table, str(path), error, rows_before=rows)
                sizes[number] += sum(text_bytes(array) for column in table.columns for array in column.chunks)
            rows += file.metadata.row_group(number).num_rows
    return sizes


def _may_repeat(chunk: "ColumnChunkMetaData") -> bool:
    """Whether a column of texts in a dictionary could be of more than `STEP` bytes."""
    is_folded = chunk.physical_type == "BYTE_ARRAY" and any("DICTIONARY" in name for name in chunk.encodings)
    return is_folded and int(chunk.total_uncompressed_size) * int(chunk.num_values) > STEP


def _rows_at_once(chunks: "Sequence[ColumnChunkMetaData]", size: int, rows: int) -> int:
    """How many rows of a row group to unpack before their texts are looked at, some `STEP` bytes."""
    # Each of these texts may repeat the one before, and go on; so it may be as long as all of them are stored.
    growing = sum(chunk.total_uncompressed_size for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings)
    a_row = max(1, size // max(1, rows) + int(growing))
    return max(1, min(BATCH, STEP // a_row))
