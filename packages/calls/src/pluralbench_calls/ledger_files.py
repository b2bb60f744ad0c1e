"""Files that are said to be ledgers, of this project or of anybody: checked before a row of them is believed."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
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
# A column that ledgers did not always have. It is empty but for models that refuse a parameter, and a published ledger
# in which it is empty goes without it, so that the ledgers of old and new builds are the same file.
ADAPTED = "adapted"
OUTCOMES = frozenset(get_args(Outcome))
LONGEST_TEXT = 10_000_000  # characters; far more than is read of an answer
MOST_TOKENS = 2**53
MAGIC = b"SQLite format 3"
AT_ONCE = 10_000  # rows that are objects of Python at a time
Row = tuple[Any, ...]


def read_ledger(path: Path) -> "pl.DataFrame":
    """The answers in a ledger file, SQLite or Parquet, one row each, sorted by key. Raises `LedgerError`."""
    import polars as pl  # noqa: PLC0415 - a command's --help waits for it otherwise

    parts = map(rows_to_frame, _sqlite_rows(path)) if _is_sqlite(path) else _parquet_parts(path)
    return pl.concat([pl.DataFrame(schema=COLUMNS), *parts])


def ledger_rows(path: Path) -> Iterator[list[Row]]:
    """The same answers some at a time, as rows of `COLUMNS`, of a file that may be larger than memory.

    Raises `LedgerError`; of a row that is damaged only when all before it were given.
    """
    return _sqlite_rows(path) if _is_sqlite(path) else (part.rows() for part in _parquet_parts(path))


def rows_to_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Rows of `COLUMNS`, at least one, as a frame."""
    import polars as pl  # noqa: PLC0415 - the same

    return pl.DataFrame(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)), schema=COLUMNS)


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():
            raise LedgerError(f"There is no ledger {path}: {'it is no file' if path.exists() else 'no such file'}.")
        with open_file(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise LedgerError(f"The ledger {path} cannot be read: {one_line(error)}.") from None


def _sqlite_rows(path: Path) -> Iterator[list[Row]]:
    columns = check_sqlite(path)
    if not columns:
        return
    with translate_sqlite_errors(path), closing(_open(path, "ro")) as database:
        # The names are ours alone, see `check_sqlite`.
        found = database.execute(f"SELECT {', '.join(columns)} FROM calls ORDER BY key COLLATE BINARY")  # noqa: S608
        while rows := found.fetchmany(AT_ONCE):
            yield validate_rows(rows if ADAPTED in columns else [(*row, "") for row in rows], path)


def _parquet_parts(path: Path) -> "Iterator[pl.DataFrame]":
    import polars as pl  # noqa: PLC0415 - the same
    from pluralbench_tables import iter_parquet, parquet_metadata  # noqa: PLC0415 - the same

    try:
        found = parquet_metadata(path, LedgerError).get(FORMAT_KEY)
    except LedgerError:
        raise LedgerError(f"{path} is no ledger: it is neither SQLite nor Parquet.") from None
    _check_format(path, found)
    for part in iter_parquet(path, error=LedgerError):
        frame = part if ADAPTED in part.columns else part.with_columns(pl.lit("").alias(ADAPTED))
        if dict(frame.schema) != dict(pl.Schema(COLUMNS)) or any(frame.null_count().row(0)):
            raise LedgerError(f"{path} is no ledger: its columns are not those of a ledger.")
        _check_values(frame, path)
        yield frame


def validate_rows(rows: list[Row], path: Path) -> list[Row]:
    """The same rows of SQLite, in which any value may stand in any column.

    Raises `LedgerError` where one does not belong.
    """
    if not rows:
        return rows
    for (name, kind), column in zip(COLUMNS.items(), zip(*rows, strict=True), strict=True):
        if {*map(type, column)} != {kind}:
            wrong = next(row[0] for row, value in zip(rows, column, strict=True) if type(value) is not kind)
            raise LedgerError(
                f"The ledger {path} is damaged: `{name}` of the call {_named(wrong)} is not "
                f"{'a whole number' if kind is int else 'a text'}."
            )
    _check_values(rows_to_frame(rows), path)
    return rows


def _check_values(frame: "pl.DataFrame", path: Path) -> None:
    """Raise `LedgerError` for the first call with a value that cannot be."""
    import polars as pl  # noqa: PLC0415 - the same

    longest, outcome = pl.max_horizontal(pl.col(pl.String).str.len_chars()), pl.col("outcome")
    least, most = pl.min_horizontal(pl.col(pl.Int64)), pl.max_horizontal(pl.col(pl.Int64))
    fault = (longest > LONGEST_TEXT) | ~outcome.is_in(OUTCOMES) | (least < 0) | (most > MOST_TOKENS)
    first = frame.filter(fault).head(1).select(key="key", longest=longest, outcome=outcome)
    for key, its_longest, its_outcome in first.iter_rows():
        wrong = "an impossible number of tokens"
        if its_longest > LONGEST_TEXT:
            wrong = f"a text of {its_longest:,} characters"
        elif its_outcome not in OUTCOMES:
            wrong = f"the outcome {one_line(its_outcome, 20)!r}"
        raise LedgerError(f"The ledger {path} is damaged: the call {_named(key)} has {wrong}.")


def _named(key: object) -> str:
    return one_line(key, 12) if isinstance(key, str) and key.isascii() else "without a key"


@contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Say in a sentence what SQLite cannot do with the ledger at `path`. Raises `LedgerError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "disk is full" in str(error):
            raise LedgerError(f"The disk is full (writing {path}); free some space.") from None
        damaged = "UTF-8" in str(error)  # Python's, for bytes that are no text
        raise LedgerError(
            f"The ledger {path} {'is damaged' if damaged else 'cannot be used'} ({_sqlite_error(error)})."
        ) from None
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # the last for names that are no text
        raise LedgerError(f"The ledger {path} is damaged ({_sqlite_error(error)}).") from None


def check_sqlite(path: Path) -> list[str]:
    """The columns that a SQLite ledger has, in our order; none for one that was killed at birth.

    Raises `LedgerError`.
    """
    if not path.is_file():  # to open a pipe would wait for whoever writes into it
        raise LedgerError(f"{path} is no ledger: it is no file.")
    try:
        version, tables, columns = _version_and_columns(path, "ro")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
            raise LedgerError(
                f"{path} is no ledger: it is not a SQLite file that can be read ({_sqlite_error(error)})."
            ) from None
        # Whoever was making it was killed at that: only who may write it can undo what they began.
        with translate_sqlite_errors(path):
            version, tables, columns = _version_and_columns(path, "rw")
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be opened ({one_line(error)}).") from None
    if not tables:
        return []
    _check_format(path, str(version) if "calls" in tables else None)
    if tables != {"calls"} or not COLUMNS.keys() - {ADAPTED} <= columns <= COLUMNS.keys():
        raise LedgerError(f"{path} is no ledger: its columns are not those of a ledger.")
    return [name for name in COLUMNS if name in columns]


def _version_and_columns(path: Path, mode: str) -> tuple[int, set[str], set[str]]:
    """The format version, the names of all that the file holds, and the stored columns of the table `calls`."""
    with closing(_open(path, mode)) as database:
        database.execute("BEGIN")  # one snapshot: another process may be making the ledger just now
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        held = database.execute("SELECT type, name FROM sqlite_master WHERE type <> 'index'").fetchall()
        # A view, a trigger or a virtual table is a program of whoever made the file.
        tables = {str(name) if kind == "table" else f"the {kind} {name}" for kind, name in held}
        columns = database.execute("SELECT name, hidden FROM pragma_table_xinfo('calls')").fetchall()
        return version, tables, {str(name) for name, hidden in columns if not hidden}


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return hardened(sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True))


def hardened(database: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, with what SQLite offers against files of unknown origin (https://sqlite.org/security.html)."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 * LONGEST_TEXT)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def _check_format(path: Path, found: str | None) -> None:
    if found is None:
        raise LedgerError(f"{path} is no ledger: it names no format version.")
    if found != str(FORMAT):
        raise LedgerError(
            f"The ledger {path} is of format {one_line(found, 20)} and this version reads format {FORMAT}; "
            "install the version of PluralBench that wrote it."
        )


def _sqlite_error(error: BaseException) -> str:
    return one_line(error, 100)
