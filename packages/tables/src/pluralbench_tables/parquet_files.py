"""Parquet."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from pluralbench_runs import UserError, one_line
from polars.exceptions import PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.text_files import check_size


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, error: type[UserError] = TableFileError
) -> pl.DataFrame:
    """The rows of a Parquet file, of all columns or of these. Raises `error`."""
    check_size(path, error)
    try:
        return pl.read_parquet(path, columns=None if columns is None else list(columns), glob=False)
    except (PolarsError, OSError, ValueError) as fault:
        raise error(f"{path} cannot be read: {one_line(fault, 300)}.") from None
