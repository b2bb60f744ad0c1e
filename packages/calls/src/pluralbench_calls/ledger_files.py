"""Reading of ledger files of unknown origin. Every row is checked."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench_runs import one_line, open_file

from pluralbench_calls.errors import LedgerError
from pluralbench_calls.records import Answer

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
FORMAT_KEY = "pluralbench_ledger_format"
COLUMNS = {item.name: int if item.type is int else str for item in fields(Answer)}
# Columns that a published ledger omits if no call has another value than this one, to which they do not apply.
OPTIONAL: dict[str, str | int] = {item.name: item.default for item in fields(Answer) if item.default is not MISSING}
MAGIC = b"SQLite format 3"
CHUNK_ROWS = 10_000  # rows that are Python objects at a time
Row = tuple[Any, ...]


def read_ledger(path: Path) -> "pl.DataFrame":
    """Read the answers in a ledger file (SQLite or Parquet) as a frame, sorted by key.

    Raises:
        LedgerError: The file is not a ledger of this format version, or is damaged.
    """
    import polars as pl

    parts = map(rows_to_frame, _sqlite_rows(path)) if _is_sqlite(path) else _parquet_parts(path)
    return pl.concat([pl.DataFrame(schema=COLUMNS), *parts])


def ledger_rows(path: Path) -> Iterator[list[Row]]:
    """Yield the answers in a ledger file in chunks of rows of `COLUMNS`; the file may be larger than memory.

    Raises:
        LedgerError: As `read_ledger`. For a damaged row, the chunks before it are yielded first.
    """
    return _sqlite_rows(path) if _is_sqlite(path) else (part.rows() for part in _parquet_parts(path))


def rows_to_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Convert rows of `COLUMNS`, at least one, to a frame. Raises `LedgerError` for a value of another type."""
    import polars as pl

    try:
        return pl.DataFrame(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)), schema=COLUMNS)
    except (TypeError, OverflowError) as error:
        raise LedgerError(f"A call of the ledger has a value of another type: {one_line(str(error), 80)}.") from None


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():
            raise LedgerError(f"There is no ledger {path}: {'not a file' if path.exists() else 'no such file'}.")
        with open_file(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise LedgerError(f"The ledger {path} cannot be read: {one_line(error)}.") from None


def _sqlite_rows(path: Path) -> Iterator[list[Row]]:
    if not check_sqlite(path):
        return
    with translate_sqlite_errors(path), closing(_open(path, "ro")) as database:
        # Only names of `Answer`.
        cursor = database.execute(f"SELECT {', '.join(COLUMNS)} FROM calls ORDER BY key COLLATE BINARY")  # noqa: S608
        while rows := cursor.fetchmany(CHUNK_ROWS):
            yield rows


def _parquet_parts(path: Path) -> "Iterator[pl.DataFrame]":
    import polars as pl
    from pluralbench_tables import iter_parquet, parquet_metadata

    try:
        version = parquet_metadata(path, LedgerError).get(FORMAT_KEY)
    except LedgerError:
        raise LedgerError(f"{path} is not a ledger: it is neither SQLite nor Parquet.") from None
    _check_format(path, version)
    for part in iter_parquet(path, error=LedgerError):
        absent = {
            name: pl.lit(default, pl.Schema(COLUMNS)[name])
            for name, default in OPTIONAL.items()
            if name not in part.columns
        }
        frame = part.with_columns(**absent)
        if dict(frame.schema) != dict(pl.Schema(COLUMNS)) or any(frame.null_count().row(0)):
            raise LedgerError(f"{path} is not a ledger: its columns are not those of a ledger.")
        yield frame.select(*COLUMNS)


@contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors with the ledger at `path` into `LedgerError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise LedgerError(f"The disk is full (writing {path}); free some space.") from None
        raise LedgerError(f"The ledger {path} cannot be used ({one_line(error, 100)}).") from None
    except sqlite3.Error as error:
        raise LedgerError(f"The ledger {path} is damaged ({one_line(error, 100)}).") from None


def check_sqlite(path: Path) -> bool:
    """Check a SQLite ledger, and return whether it has a table; one whose process was killed at its start has none.

    Raises:
        LedgerError: The file is not a ledger of this format version, or is damaged.
    """
    if not path.is_file():  # opening a pipe would block
        raise LedgerError(f"{path} is not a ledger: it is not a regular file.")
    try:
        version, tables, columns = _version_and_columns(path, "ro")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
            raise LedgerError(
                f"{path} is not a ledger: it is not a readable SQLite file ({one_line(error, 100)})."
            ) from None
        # The process that created it was killed in a transaction, which only a writer can roll back.
        with translate_sqlite_errors(path):
            version, tables, columns = _version_and_columns(path, "rw")
    if not tables:
        return False
    _check_format(path, str(version) if "calls" in tables else None)
    if tables != {"calls"} or columns != COLUMNS.keys():
        raise LedgerError(f"{path} is not a ledger: its columns are not those of a ledger.")
    return True


def _version_and_columns(path: Path, mode: str) -> tuple[int, set[str], set[str]]:
    """Return the format version, the names of the tables, and the columns of the table `calls`."""
    with closing(_open(path, mode)) as database:
        database.execute("BEGIN")  # one snapshot: another process may be creating the ledger
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT name FROM sqlite_master WHERE type <> 'index'").fetchall()
        columns = database.execute("SELECT name FROM pragma_table_info('calls')").fetchall()
        return version, {name for (name,) in tables}, {name for (name,) in columns}


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)


def _check_format(path: Path, version: str | None) -> None:
    if version is None:
        raise LedgerError(f"{path} is not a ledger: it has no format version.")
    if version != str(FORMAT):
        raise LedgerError(
            f"The ledger {path} has format {one_line(version, 20)}, and this version reads format {FORMAT}; "
            "install the version of PluralBench that wrote it."
        )
