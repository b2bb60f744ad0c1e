from .csv_files import read_csv
from .dialect import SPREADSHEET, Dialect, Quoting, Separator
from .errors import TableFileError
from .formulas import csv_text, escape_formula, unescape_formulas
from .frames import frame_from_rows, typed_frame
from .json_files import parse_json, read_json, read_jsonl, read_objects, write_jsonl
from .parquet_files import iter_parquet, parquet_metadata, read_parquet, release_memory
from .text_files import read_text

__all__ = [
    "SPREADSHEET",
    "Dialect",
    "Quoting",
    "Separator",
    "TableFileError",
    "csv_text",
    "escape_formula",
    "frame_from_rows",
    "iter_parquet",
    "parquet_metadata",
    "parse_json",
    "read_csv",
    "read_json",
    "read_jsonl",
    "read_objects",
    "read_parquet",
    "read_text",
    "release_memory",
    "typed_frame",
    "unescape_formulas",
    "write_jsonl",
]
