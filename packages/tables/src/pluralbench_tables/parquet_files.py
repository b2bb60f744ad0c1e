"""Parquet of unknown origin.

pyarrow opens it: it checks what it reads, and refuses a schema whose depth ends the whole process in polars.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_runs import UserError, one_line
from polars.exceptions import PanicException, PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, COLUMNS, MEMORY_BYTES
from pluralbench_tables.text_files import check_size

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

BATCH = 1024  # rows that are unpacked before their size is looked at
RAISED = (PolarsError, PanicException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError)


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> pl.DataFrame:
    """The rows of a Parquet file, of all columns or of these, as `polars.read_parquet` has them.

    Raises `error` for what is no Parquet, is damaged, lacks one of `columns`, or is larger than `limits.COLUMNS`,
    `limits.CELLS` and `limits.MEMORY_BYTES` allow.
    """
    check_size(path, error)
    try:
        return _read(path, columns)
    except _Refused as fault:
        raise error(f"{path} {fault}.") from None
    except RAISED as fault:
        raise error(f"{path} cannot be read: {one_line(fault, 300)}.") from None


class _Refused(Exception):
    """A file that can be read, but is not."""


def _read(path: Path, columns: Sequence[str] | None) -> pl.DataFrame:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - half a second that text files save

    with ParquetFile(path) as file:
        names = file.schema_arrow.names
        missing = next((name for name in columns or [] if name not in names), None)
        if missing is not None:
            raise _Refused(f"has no column `{missing}`; it has {', '.join(names)}")
        _check_metadata(file)
        table = _unpacked(file, None if columns is None else list(columns))
    table.validate(full=True)
    frame = pl.from_arrow(table, rechunk=True)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _check_metadata(file: "ParquetFile") -> None:
    found = file.metadata
    leaves = range(found.num_columns)
    if found.num_columns > COLUMNS:
        raise _Refused(f"has {found.num_columns:,} columns, and at most {COLUMNS:,} are read")
    name, times = Counter(file.schema_arrow.names).most_common(1)[0] if leaves else ("", 1)
    if times > 1:
        raise _Refused(f"has the column `{name}` {times} times; name every column once")
    if found.num_rows * found.num_columns > CELLS:
        raise _Refused(
            f"has {found.num_rows:,} rows of {found.num_columns:,} columns, and at most {CELLS:,} cells are "
            "read; split it"
        )
    groups = map(found.row_group, range(found.num_row_groups))
    unpacked = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    if unpacked > MEMORY_BYTES:
        raise _Refused(f"unpacks to {unpacked:,} bytes, and at most {MEMORY_BYTES:,} are read; split it")


def _unpacked(file: "ParquetFile", columns: list[str] | None) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415 - as above

    # A column of one long text, repeated, is small in the file; so the size of what was read counts as well.
    batches, size = [], 0
    for batch in file.iter_batches(BATCH, columns=columns):
        batches.append(batch)
        size += batch.nbytes
        if size > MEMORY_BYTES:
            raise _Refused(f"unpacks to more than {MEMORY_BYTES:,} bytes, which are as many as are read; split it")
    table = pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
    return table if columns is None else table.select(columns)
