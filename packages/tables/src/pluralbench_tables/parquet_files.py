"""Reader of Parquet files of unknown origin.

It uses pyarrow, which validates what it reads, and refuses a schema that is so deep that polars would crash.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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

BATCH_ROWS = 1024  # unpacked before their texts are checked
BATCH_BYTES = 100_000_000  # the same
READ_ERRORS = (PolarsError, PanicException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError)


def parquet_metadata(path: Path, error: type[UserError] = TableFileError) -> dict[str, str]:
    """Read the key-value metadata of a Parquet file. Raises `error`."""
    import pyarrow as pa  # noqa: PLC0415 - imports take half a second
    from pyarrow.parquet import read_metadata  # noqa: PLC0415 - the same

    try:
        metadata = read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise error(f"{path} cannot be read: {one_line(cause, 300)}.") from None
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in metadata.items()}


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> pl.DataFrame:
    """Read a Parquet file like `polars.read_parquet`.

    Args:
        path: The file.
        columns: Names of the columns to read. None: all.
        error: The type of the errors.

    Raises:
        UserError: Of the type `error`: the file is not Parquet, is damaged, lacks one of `columns`, has a text longer
            than `limits.TEXT_CHARACTERS`, or exceeds `limits.COLUMNS`, `limits.CELLS` or `limits.MEMORY_BYTES`.
    """
    check_size(path, error)
    with _opened(path, columns, CELLS, error) as file:
        import pyarrow as pa  # noqa: PLC0415 - as above

        batches = list(_batches(path, file, columns, CELLS, MEMORY_BYTES, error))
        table = pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
        return _frame(table if columns is None else table.select(columns))


def iter_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> Iterator[pl.DataFrame]:
    """Read a Parquet file of any size in parts. A file without rows gives one empty part.

    The memory of a part is limited, and all parts together must be in proportion to the file (see `limits.GROWTH`).

    Args:
        path: The file.
        columns: Names of the columns to read. None: all.
        error: The type of the errors.

    Raises:
        UserError: As `read_parquet`. For an error in a part, the parts before it are yielded first.
    """
    check_size(path, error, any_size=True)
    size = path.stat().st_size
    max_cells = max(CELLS, size)
    with _opened(path, columns, max_cells, error) as file:
        batches = _batches(path, file, columns, max_cells, max(MEMORY_BYTES, GROWTH * size), error)
        for batch in batches if file.metadata.num_rows else [file.schema_arrow.empty_table()]:
            yield _frame(batch if columns is None else batch.select(columns))


def release_memory() -> None:
    """Return the memory of freed tables to the system, which Arrow would keep."""
    from pyarrow import default_memory_pool  # noqa: PLC0415 - as above

    default_memory_pool().release_unused()


class _Refused(Exception):
    """A file is readable but exceeds a limit or lacks a column."""


@contextmanager
def _opened(
    path: Path, columns: Sequence[str] | None, max_cells: int, error: type[UserError]
) -> "Iterator[ParquetFile]":
    """Open a file and check its metadata. Raises `error`, also for errors inside the block."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - as above

    try:
        with ParquetFile(path) as file:
            _check_metadata(file, columns, max_cells)
            yield file
    except _Refused as cause:
        raise error(f"{path} {cause}.") from None
    except READ_ERRORS as cause:
        raise error(f"{path} cannot be read: {one_line(cause, 300)}.") from None


def _frame(table: "pa.Table | pa.RecordBatch") -> pl.DataFrame:
    table.validate(full=True)
    frame = pl.from_arrow(table, rechunk=True)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _check_metadata(file: "ParquetFile", columns: Sequence[str] | None, max_cells: int) -> None:
    names, metadata = file.schema_arrow.names, file.metadata
    missing = next((name for name in columns or [] if name not in names), None)
    if missing is not None:
        raise _Refused(f"has no column `{missing}`; it has {', '.join(names)}")
    if metadata.num_columns > COLUMNS:
        raise _Refused(f"has {metadata.num_columns:,} columns; the maximum is {COLUMNS:,}")
    name, times = Counter(names).most_common(1)[0] if metadata.num_columns else ("", 1)
    if times > 1:
        raise _Refused(f"has the column `{name}` {times} times; use unique names")
    # polars would print a Rust panic before it refuses them.
    read = [field for field in file.schema_arrow if field.name in (names if columns is None else columns)]
    wide = next((field.name for field in read if _is_wide(field.type)), None)
    if wide is not None:
        raise _Refused(f"has decimals of 256 bits in `{wide}`; write them with at most 38 digits, or as text")
    if metadata.num_rows * metadata.num_columns > max_cells:
        raise _Refused(
            f"has {metadata.num_rows:,} rows of {metadata.num_columns:,} columns; the maximum is {max_cells:,} cells; "
            "split it"
        )


def _is_wide(kind: "pa.DataType") -> bool:
    """Whether a type has decimals of 256 bits, at any depth."""
    from pyarrow.types import is_decimal256  # noqa: PLC0415 - as above

    return is_decimal256(kind) or any(_is_wide(kind.field(place).type) for place in range(kind.num_fields))


def _batches(
    path: Path,
    file: "ParquetFile",
    columns: Sequence[str] | None,
    max_cells: int,
    max_bytes: int,
    error: type[UserError],
) -> "Iterator[pa.RecordBatch]":
    """Yield rows in batches. About `BATCH_BYTES` are unpacked before their texts are checked."""
    from pluralbench_tables.arrow_texts import check_texts  # noqa: PLC0415 - as above

    def check_memory(size: int) -> None:
        if size > max_bytes:
            raise _Refused(f"unpacks to more than {max_bytes:,} bytes, the maximum; split it")

    groups = [_chunks(file, number, columns) for number in range(file.num_row_groups)]
    values = sum(chunk.num_values for chunks in groups for chunk in chunks)
    if values > max_cells:  # a row may have any number of them
        raise _Refused(f"has {values:,} values in its lists; the maximum is {max_cells:,}; split it")
    sizes = _sizes(path, groups, error)
    check_memory(sum(sizes))
    rows, size = 0, 0
    for number, (chunks, expected) in enumerate(zip(groups, sizes, strict=True)):
        batch_rows = _batch_rows(chunks, expected, file.metadata.row_group(number).num_rows)
        for batch in file.iter_batches(
            batch_rows, row_groups=[number], columns=None if columns is None else [*columns]
        ):
            check_texts(batch, str(path), error, rows_before=rows)
            rows += batch.num_rows
            size += batch.nbytes
            check_memory(size)  # the sizes in the metadata may be wrong
            yield batch


def _chunks(file: "ParquetFile", group: int, columns: Sequence[str] | None) -> "list[ColumnChunkMetaData]":
    """List the chunks of a row group that are read; a struct has a chunk for each field."""
    row_group = file.metadata.row_group(group)
    chunks = map(row_group.column, range(row_group.num_columns))
    return [
        chunk
        for chunk in chunks
        if columns is None or any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
    ]


def _sizes(path: Path, groups: "Sequence[list[ColumnChunkMetaData]]", error: type[UserError]) -> list[int]:
    """Compute how many bytes each row group unpacks to.

    A repeated text may be stored once. A column that could unpack to more than `BATCH_BYTES` this way is first read as
    a dictionary, which is small. A repeated value of fixed length has that length each time.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - as above

    from pluralbench_tables.arrow_texts import check_texts, text_bytes  # noqa: PLC0415 - as above

    dictionaries = [[chunk.path_in_schema for chunk in chunks if _may_repeat(chunk)] for chunks in groups]
    with ParquetFile(path, read_dictionary=sorted({name for names in dictionaries for name in names})) as file:
        lengths = {column.path: column.length for column in map(file.schema.column, range(len(file.schema)))}
        sizes = [
            sum(max(chunk.total_uncompressed_size, _fixed_bytes(chunk, lengths)) for chunk in chunks)
            for chunks in groups
        ]
        rows = 0
        for number, names in enumerate(dictionaries):
            for name in names:
                table = file.read_row_group(number, columns=[name], use_threads=False)
                check_texts(table, str(path), error, rows_before=rows)
                sizes[number] += sum(text_bytes(array) for column in table.columns for array in column.chunks)
            rows += file.metadata.row_group(number).num_rows
    return sizes


def _fixed_bytes(chunk: "ColumnChunkMetaData", lengths: Mapping[str, int]) -> int:
    """Compute how many bytes the values of a chunk have if they are of a fixed length; otherwise 0."""
    is_fixed = chunk.physical_type == "FIXED_LEN_BYTE_ARRAY"
    return int(chunk.num_values) * lengths[chunk.path_in_schema] if is_fixed else 0


def _may_repeat(chunk: "ColumnChunkMetaData") -> bool:
    """Whether a column of texts in a dictionary could unpack to more than `BATCH_BYTES`."""
    is_dictionary = chunk.physical_type == "BYTE_ARRAY" and any("DICTIONARY" in name for name in chunk.encodings)
    return is_dictionary and int(chunk.total_uncompressed_size) * int(chunk.num_values) > BATCH_BYTES


def _batch_rows(chunks: "Sequence[ColumnChunkMetaData]", size: int, rows: int) -> int:
    """Compute how many rows of a row group have about `BATCH_BYTES` when unpacked."""
    # In this encoding a text may extend the previous one, so each may be as long as the whole stored column.
    delta_bytes = sum(chunk.total_uncompressed_size for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings)
    row_bytes = max(1, size // max(1, rows) + int(delta_bytes))
    return max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes))
