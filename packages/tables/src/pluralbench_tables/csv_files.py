"""CSV."""

from io import BytesIO
from pathlib import Path

import polars as pl
from pluralbench_runs import UserError, one_line
from polars.exceptions import PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.text_files import read_text


def read_csv(path: Path, error: type[UserError] = TableFileError) -> pl.DataFrame:
    """The cells of a CSV file as strings, null where nothing stands in a cell. Raises `error`."""
    text = read_text(path, error)
    try:
        return pl.read_csv(BytesIO(text.encode()), infer_schema=False)
    except PolarsError as fault:
        raise error(f"{path} cannot be read as CSV: {one_line(fault)}.") from None
