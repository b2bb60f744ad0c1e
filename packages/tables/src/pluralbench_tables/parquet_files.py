"""Reader of Parquet files of unknown origin, by pyarrow, which refuses schemas so deep that polars would crash."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_runs import UserError, one_line
from polars.exceptions import PanicException, PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, MEMORY_BYTES
from pluralbench_tables.text_files import check_size

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

BATCH_ROWS = 1024
BUFFER_BYTES = 65_536
READ_ERRORS = (PolarsError, PanicException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError)


def parquet_metadata(path: Path, error: type[UserError] = TableFileError) -> dict[str, str]:
    """Read the key-value metadata of a Parquet file. Raises `error`."""
    import pyarrow as pa
    from pyarrow.parquet import read_metadata

    try:
        metadata = read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise error(f"{path} cannot be read: {one_line(cause, 300)}.") from None
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in metadata.items()}


def read_parquet(
    path: Path,
    columns: Sequence[str] | None = None,
    error: type[UserError] = TableFileError,
    needed: Callable[[str], object] | None = None,
) -> pl.DataFrame:
    """Read a Parquet file like `polars.read_parquet`. Columns that are not `needed` are null.

    Raises:
        UserError: Of the type `error`: the file is not Parquet, is damaged, lacks one of `columns`, or exceeds
            `limits.CELLS` or `limits.MEMORY_BYTES`.
    """
    check_size(path, error)
    with _opened(path, columns, error) as file:
        import pyarrow as pa

        groups = map(file.metadata.row_group, range(file.num_row_groups))
        values = sum(group.column(number).num_values for group in groups for number in range(group.num_columns))
        if values > CELLS:  # lists may hold any number of them
            raise error(f"{path} has {values:,} values; the maximum is {CELLS:,}; split it.")
        batches: list[pa.RecordBatch] = []
        size = 0
        names = file.schema_arrow.names if columns is None else [*columns]
        read = ([*filter(needed, names)] if needed else None) or names
        for batch in _batches(file, read):
            size += batch.nbytes
            if size > MEMORY_BYTES:  # a repeated text is stored once
                raise error(f"{path} unpacks to more than {MEMORY_BYTES:,} bytes, the maximum; split it.")
            batches.append(batch)
        table = pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
        frame = _frame(table.select(read))
    return frame.select(pl.col(name) if name in read else pl.lit(None).alias(name) for name in names)


def iter_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> Iterator[pl.DataFrame]:
    """Read a Parquet file of any size in parts of `BATCH_ROWS`. A file without rows gives one empty part.

    Raises:
        UserError: As `read_parquet`. For an error in a part, the parts before it are yielded first.
    """
    check_size(path, error, any_size=True)
    with _opened(path, columns, error) as file:
        for batch in _batches(file, columns) if file.metadata.num_rows else [file.schema_arrow.empty_table()]:
            yield _frame(batch if columns is None else batch.select(columns))


def release_memory() -> None:
    """Return the memory of freed tables to the system, which Arrow would keep."""
    from pyarrow import default_memory_pool

    default_memory_pool().release_unused()


@contextmanager
def _opened(path: Path, columns: Sequence[str] | None, error: type[UserError]) -> "Iterator[ParquetFile]":
    """Open a file that has the columns. Raises `error`, also for errors inside the block."""
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:  # else it keeps all that it reads
            names = file.schema_arrow.names
            missing = next((name for name in columns or [] if name not in names), None)
            if missing is not None:
                raise error(f"{path} has no column `{missing}`; it has {', '.join(names)}.")
            yield file
    except READ_ERRORS as cause:
        raise error(f"{path} cannot be read: {one_line(cause, 300)}.") from None


def _batches(file: "ParquetFile", columns: Sequence[str] | None) -> "Iterator[pa.RecordBatch]":
    yield from file.iter_batches(BATCH_ROWS, columns=None if columns is None else [*columns], use_threads=False)


def _frame(table: "pa.Table | pa.RecordBatch") -> pl.DataFrame:
    table.validate(full=True)
    # A column at a time, because a contiguous column is a copy.
    columns = zip(table.schema.names, table.columns, strict=True)
    return pl.DataFrame([pl.Series(name, pl.from_arrow(column, rechunk=True)) for name, column in columns])
