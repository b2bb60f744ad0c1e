"""Reading of ledger files of unknown origin. Every row is checked."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pluralbench_runs import one_line, open_file

from pluralbench_calls.errors import LedgerError
from pluralbench_calls.records import Answer, Outcome

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
FORMAT_KEY = "pluralbench_ledger_format"
COLUMNS = {item.name: int if item.type is int else str for item in fields(Answer)}
# Columns that old ledgers lack, with the value of a call to which they do not apply. A published ledger omits such a
# column if no call has another value, so that old and new builds give the same file.
OPTIONAL: dict[str, str | int] = {item.name: item.default for item in fields(Answer) if item.default is not MISSING}
OUTCOMES = frozenset(get_args(Outcome))
MAX_TEXT_LENGTH = 10_000_000  # characters; far more than is read of an answer
MAX_TOKENS = 2**53
MAGIC = b"SQLite format 3"
BESIDE = ("-journal", "-wal", "-shm")  # ends of the names of files that SQLite reads with a database
CHUNK_ROWS = 10_000  # rows that are Python objects at a time
Row = tuple[Any, ...]


def read_ledger(path: Path) -> "pl.DataFrame":
    """Read the answers in a ledger file (SQLite or Parquet) as a frame, sorted by key.

    Raises:
        LedgerError: The file is not a ledger of this format version, or is damaged.
    """
    import polars as pl  # noqa: PLC0415 - slow to import for --help

    parts = map(rows_to_frame, _sqlite_rows(path)) if _is_sqlite(path) else _parquet_parts(path)
    return pl.concat([pl.DataFrame(schema=COLUMNS), *parts])


def ledger_rows(path: Path) -> Iterator[list[Row]]:
    """Yield the answers in a ledger file in chunks of rows of `COLUMNS`; the file may be larger than memory.

    Raises:
        LedgerError: As `read_ledger`. For a damaged row, the chunks before it are yielded first.
    """
    return _sqlite_rows(path) if _is_sqlite(path) else (part.rows() for part in _parquet_parts(path))


def rows_to_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Convert rows of `COLUMNS`, at least one, to a frame."""
    import polars as pl  # noqa: PLC0415 - the same

    return pl.DataFrame(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)), schema=COLUMNS)


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():
            raise LedgerError(f"There is no ledger {path}: {'not a file' if path.exists() else 'no such file'}.")
        with open_file(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise LedgerError(f"The ledger {path} cannot be read: {one_line(error)}.") from None


def _sqlite_rows(path: Path) -> Iterator[list[Row]]:
    present = check_sqlite(path)
    if not present:
        return
    columns = [name if name in present else f"{OPTIONAL[name]!r} AS {name}" for name in COLUMNS]
    with translate_sqlite_errors(path), closing(_open(path, "ro")) as database:
        # Only names and defaults of `Answer`.
        cursor = database.execute(f"SELECT {', '.join(columns)} FROM calls ORDER BY key COLLATE BINARY")  # noqa: S608
        while rows := cursor.fetchmany(CHUNK_ROWS):
            yield validate_rows(rows, path)


def _parquet_parts(path: Path) -> "Iterator[pl.DataFrame]":
    import polars as pl  # noqa: PLC0415 - the same
    from pluralbench_tables import iter_parquet, parquet_metadata  # noqa: PLC0415 - the same

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
        _check_values(frame, path)
        yield frame.select(*COLUMNS)


def validate_rows(rows: list[Row], path: Path) -> list[Row]:
    """Check rows of SQLite, whose columns accept any type, and return them.

    Raises:
        LedgerError: A value has the wrong type or is impossible.
    """
    if not rows:
        return rows
    for (name, kind), column in zip(COLUMNS.items(), zip(*rows, strict=True), strict=True):
        if {*map(type, column)} != {kind}:
            wrong = next(row[0] for row, value in zip(rows, column, strict=True) if type(value) is not kind)
            raise LedgerError(
                f"The ledger {path} is damaged: `{name}` of the call {_format_key(wrong)} is not "
                f"{'an integer' if kind is int else 'a string'}."
            )
    _check_values(rows_to_frame(rows), path)
    return rows


def _check_values(frame: "pl.DataFrame", path: Path) -> None:
    """Raise `LedgerError` for the first call with an impossible value."""
    import polars as pl  # noqa: PLC0415 - the same

    longest, outcome = pl.max_horizontal(pl.col(pl.String).str.len_chars()), pl.col("outcome")
    least, most = pl.min_horizontal(pl.col(pl.Int64)), pl.max_horizontal(pl.col(pl.Int64))
    is_wrong = (longest > MAX_TEXT_LENGTH) | ~outcome.is_in(OUTCOMES) | (least < 0) | (most > MAX_TOKENS)
    first = frame.filter(is_wrong).head(1).select(key="key", longest=longest, outcome=outcome)
    for key, its_longest, its_outcome in first.iter_rows():
        wrong = "an impossible number of tokens"
        if its_longest > MAX_TEXT_LENGTH:
            wrong = f"a text of {its_longest:,} characters"
        elif its_outcome not in OUTCOMES:
            wrong = f"the outcome {one_line(its_outcome, 20)!r}"
        raise LedgerError(f"The ledger {path} is damaged: the call {_format_key(key)} has {wrong}.")


def _format_key(key: object) -> str:
    return one_line(key, 12) if isinstance(key, str) and key.isascii() else "without a key"


@contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors with the ledger at `path` into `LedgerError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "disk is full" in str(error):
            raise LedgerError(f"The disk is full (writing {path}); free some space.") from None
        damaged = "UTF-8" in str(error)  # Python's error for bytes that are not text
        raise LedgerError(
            f"The ledger {path} {'is damaged' if damaged else 'cannot be used'} ({_sqlite_error(error)})."
        ) from None
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # UnicodeDecodeError: names that are not text
        raise LedgerError(f"The ledger {path} is damaged ({_sqlite_error(error)}).") from None


def check_sqlite(path: Path) -> list[str]:
    """Check a SQLite ledger, and return its columns in the order of `COLUMNS`.

    A ledger whose process was killed while creating it has no columns.

    Raises:
        LedgerError: The file is not a ledger of this format version, or is damaged.
    """
    for file in (path, *(path.with_name(path.name + end) for end in BESIDE)):
        if not file.is_file() and (file == path or file.exists()):  # opening a pipe would block
            raise LedgerError(f"{path} is not a ledger: {file} is not a regular file.")
    try:
        version, tables, columns = _version_and_columns(path, "ro")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
            raise LedgerError(
                f"{path} is not a ledger: it is not a readable SQLite file ({_sqlite_error(error)})."
            ) from None
        # The process that created it was killed in a transaction, which only a writer can roll back.
        with translate_sqlite_errors(path):
            version, tables, columns = _version_and_columns(path, "rw")
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be opened ({one_line(error)}).") from None
    if not tables:
        return []
    _check_format(path, str(version) if "calls" in tables else None)
    if tables != {"calls"} or not COLUMNS.keys() - OPTIONAL.keys() <= columns <= COLUMNS.keys():
        raise LedgerError(f"{path} is not a ledger: its columns are not those of a ledger.")
    return [name for name in COLUMNS if name in columns]


def _version_and_columns(path: Path, mode: str) -> tuple[int, set[str], set[str]]:
    """Return the format version, the names of all objects in the file, and the stored columns of the table `calls`."""
    with closing(_open(path, mode)) as database:
        database.execute("BEGIN")  # one snapshot: another process may be creating the ledger
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        objects = database.execute("SELECT type, name FROM sqlite_master WHERE type <> 'index'").fetchall()
        # A view, a trigger or a virtual table is code of the file's author.
        tables = {str(name) if kind == "table" else f"the {kind} {name}" for kind, name in objects}
        columns = database.execute("SELECT name, hidden FROM pragma_table_xinfo('calls')").fetchall()
        return version, tables, {str(name) for name, hidden in columns if not hidden}


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return harden(sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True))


def harden(database: sqlite3.Connection) -> sqlite3.Connection:
    """Protect a connection against files of unknown origin (https://sqlite.org/security.html), and return it."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 * MAX_TEXT_LENGTH)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def _check_format(path: Path, version: str | None) -> None:
    if version is None:
        raise LedgerError(f"{path} is not a ledger: it has no format version.")
    if version != str(FORMAT):
        raise LedgerError(
            f"The ledger {path} has format {one_line(version, 20)}, and this version reads format {FORMAT}; "
            "install the version of PluralBench that wrote it."
        )


def _sqlite_error(error: BaseException) -> str:
    return one_line(error, 100)
