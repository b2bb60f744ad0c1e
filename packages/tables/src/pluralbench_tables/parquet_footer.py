"""What a Parquet file says of itself beside its rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pluralbench_runs import UserError, one_line

from pluralbench_tables.errors import TableFileError


def parquet_metadata(path: Path, error: type[UserError] = TableFileError) -> dict[str, str]:
    """The texts that were written into the footer of a Parquet file, by name. Raises `error`."""
    try:
        found = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as fault:
        raise error(f"{path} cannot be read: {one_line(fault, 300)}.") from None
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in found.items()}
