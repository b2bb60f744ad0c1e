"""The ledger: every recorded answer by the key of its request. SQLite while working, Parquet when published."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pluralbench_runs import UserError

from pluralbench_calls.errors import CallsError, LedgerError
from pluralbench_calls.records import Answer

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
FORMAT_KEY = "pluralbench_ledger_format"
COLUMNS = {item.name: int if item.type is int else str for item in fields(Answer)}
# A column that ledgers did not always have. It is empty but for models that refuse a parameter, and a published ledger
# in which it is empty goes without it, so that the ledgers of old and new builds are the same file.
ADAPTED = "adapted"
IN_ONE_QUERY = 10_000


class Ledger:
    """Recorded answers in a SQLite file; a context manager.

    An answer is committed as it arrives (write-ahead log, normal synchronisation): killing the process loses
    none; a power cut can lose the last ones but never damages the file.

    used: keys of the answers that were looked up since it was opened, which are what a build depends on.
    holds_work: whether it holds answers that were asked for here, rather than taken from another ledger just now.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the ledger at `path`. Raises `LedgerError` for another format version or another file."""
        self.used: set[str] = set()
        if path.exists():
            _check_sqlite(path)
        try:
            # Where an event loop runs already, `ask` works in a thread of its own while this one waits for it.
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise LedgerError(f"The ledger {path} cannot be opened ({error}).") from None
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        columns = ", ".join(f"{name} {'INTEGER' if kind is int else 'TEXT'} NOT NULL" for name, kind in COLUMNS.items())
        with self._transaction():
            self._database.execute(f"CREATE TABLE IF NOT EXISTS calls ({columns}, PRIMARY KEY (key)) WITHOUT ROWID")
            if ADAPTED not in {row[1] for row in self._database.execute("PRAGMA table_info(calls)")}:
                self._database.execute(f"ALTER TABLE calls ADD COLUMN {ADAPTED} TEXT NOT NULL DEFAULT ''")
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        self.holds_work = len(self) > 0

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._database.close()

    def __len__(self) -> int:
        count: int = self._database.execute("SELECT count(*) FROM calls").fetchone()[0]
        return count

    def record(self, *answers: Answer) -> None:
        """Record answers, for good: a key that is known keeps its first answer."""
        self.holds_work |= bool(answers)
        self._insert([_as_row(answer) for answer in answers])

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        statement = f"INSERT INTO calls VALUES ({marks}) ON CONFLICT (key) DO NOTHING"  # noqa: S608 - no input in it
        with self._transaction():
            self._database.executemany(statement, rows)

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """The recorded answers among `keys`."""
        wanted, found = list(dict.fromkeys(keys)), {}
        for part in _slices(wanted):
            marks = ", ".join("?" * len(part))
            rows = self._database.execute(f"SELECT * FROM calls WHERE key IN ({marks})", part)  # noqa: S608 - the same
            found.update({row[0]: Answer(*row) for row in rows})
        self.used |= found.keys()
        return found

    def forget_errors(self) -> int:
        """Forget the calls that the server refused, so that they are asked again; how many there were."""
        return self._database.execute("DELETE FROM calls WHERE outcome = 'error'").rowcount

    def has_answer_of(self, provider: str) -> bool:
        """Whether any call to this provider was answered, and not rejected."""
        one = "SELECT 1 FROM calls WHERE provider = ? AND outcome <> 'error' LIMIT 1"
        return self._database.execute(one, (provider,)).fetchone() is not None

    def rejected(self) -> int:
        """How many of the calls that were looked up the server refused."""
        return sum(answer.outcome == "error" for answer in self.find(self.used).values())

    def usage(self) -> tuple[int, int]:
        """All tokens so far, of prompts and of completions."""
        row = self._database.execute(
            "SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0) FROM calls"
        ).fetchone()
        return row[0], row[1]

    def frame(self, keys: Iterable[str] | None = None) -> "pl.DataFrame":
        """The recorded answers (among `keys`, if given), one row each, sorted by key."""
        import polars as pl  # noqa: PLC0415 - a command's --help waits for it otherwise

        used = set(self.used)
        if keys is None:
            keys = [row[0] for row in self._database.execute("SELECT key FROM calls")]
        # As Python objects the answers take several times the room, so few of them are ever that.
        parts = [
            pl.DataFrame(list(map(_as_row, self.find(part).values())), schema=COLUMNS, orient="row").sort("key")
            for part in _slices(sorted(set(keys)))
        ]
        self.used = used  # to look at an answer here is not to depend on it
        return pl.concat(parts) if parts else pl.DataFrame(schema=COLUMNS)

    def export(self, path: Path, keys: Iterable[str] | None = None) -> None:
        """Write the answers (among `keys`, if given) as Parquet, sorted by key."""
        frame = self.frame(keys)
        if (frame[ADAPTED] == "").all():
            frame = frame.drop(ADAPTED)
        frame.write_parquet(path, metadata={FORMAT_KEY: str(FORMAT)})

    def take(self, path: Path) -> int:
        """Add the answers of another ledger (SQLite or Parquet) that are not known here; how many it holds.

        Raises `LedgerError` when `path` is no ledger of this format version.
        """
        frame = read_ledger(path)
        for part in frame.iter_slices(IN_ONE_QUERY):
            self._insert(part.rows())
        return frame.height


def _slices(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), IN_ONE_QUERY):
        yield keys[start : start + IN_ONE_QUERY]


def _as_row(answer: Answer) -> tuple[object, ...]:
    return tuple(getattr(answer, name) for name in COLUMNS)  # `astuple` would copy each text deeply


@contextmanager
def working_ledger(path: Path | Ledger) -> Iterator[Ledger]:
    """The ledger at `path` while work goes on; one that holds no work in the end goes, and binds no later run.

    A ledger that is open already, since the work is part of other work, is left open.
    """
    if isinstance(path, Ledger):
        yield path
        return
    keep = True  # what cannot be opened is not ours to remove
    try:
        with Ledger(path) as ledger:
            try:
                yield ledger
            finally:
                keep = ledger.holds_work
    finally:
        if not keep:
            path.unlink(missing_ok=True)


@dataclass
class Recording:
    """The calls of one piece of work.

    extract: a Parquet file of those that it used, there once it is done. new: how many were made for it, known then.
    """

    ledger: Ledger
    extract: Path
    new: int = 0


@contextmanager
def recording(work: Path, known: Iterable[Path], *, retry_errors: bool = False) -> Iterator[Recording]:
    """Record the calls of a piece of work in its folder, starting from the ledgers that are known already.

    retry_errors: forget what a server rejected, so that it is asked again. Where the work fails for another reason than
    its calls, as when nothing is left of it, the error says how many of them were rejected.
    """
    with working_ledger(work / "ledger.sqlite") as ledger:
        for path in known:
            ledger.take(path)
        if retry_errors:
            ledger.forget_errors()
        before = len(ledger)
        calls = Recording(ledger, work / "ledger.parquet")
        try:
            yield calls
        except UserError as error:
            rejected = ledger.rejected()
            if rejected and not isinstance(error, CallsError):
                error.args = (
                    f"{error} The server rejected {rejected:,} of its calls: --retry-errors asks them again.",
                )
            raise
        ledger.export(calls.extract, ledger.used)
        calls.new = len(ledger) - before


def read_ledger(path: Path) -> "pl.DataFrame":
    """The answers in a ledger file, SQLite or Parquet, one row each. Raises `LedgerError`."""
    import polars as pl  # noqa: PLC0415 - a command's --help waits for it otherwise
    from polars.exceptions import PolarsError  # noqa: PLC0415 - the same

    if not path.is_file():
        raise LedgerError(f"There is no ledger {path}.")
    with path.open("rb") as file:
        magic = file.read(16)
    if magic.startswith(b"SQLite format 3"):
        _check_sqlite(path)
        try:
            with closing(_open(path, "ro")) as database:
                cursor = database.execute("SELECT * FROM calls")
                columns = {name: COLUMNS.get(name, pl.String) for name, *_ in cursor.description}
                rows = cursor.fetchall()
        except sqlite3.DatabaseError as error:
            raise LedgerError(f"The ledger {path} is damaged ({error}).") from None
        return _whole(pl.DataFrame(rows, schema=columns, orient="row")).sort("key")
    try:
        found = pl.read_parquet_metadata(path).get(FORMAT_KEY)
        frame = _whole(pl.read_parquet(path, glob=False))
    except (PolarsError, OSError):
        raise LedgerError(f"{path} is no ledger: it is neither SQLite nor Parquet.") from None
    _check_format(path, found)
    if dict(frame.schema) != dict(pl.Schema(COLUMNS)) or any(frame.null_count().row(0)):
        raise LedgerError(f"{path} is no ledger: its columns are not those of a ledger.")
    return frame


def _whole(frame: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl  # noqa: PLC0415 - a command's --help need not wait for it

    return frame if ADAPTED in frame.columns else frame.with_columns(pl.lit("").alias(ADAPTED))


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)


def _check_sqlite(path: Path) -> None:
    try:
        version, tables = _version_and_tables(path, "ro")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise LedgerError(f"{path} is no ledger: it is not a SQLite file.") from None
        # Whoever was making it was killed at that: only who may write it can undo what they began.
        version, tables = _version_and_tables(path, "rw")
    if tables:  # a file without tables is a ledger that was killed at birth
        _check_format(path, str(version) if "calls" in tables else None)


def _version_and_tables(path: Path, mode: str) -> tuple[int, set[str]]:
    with closing(_open(path, mode)) as database:
        database.execute("BEGIN")  # one snapshot: another process may be making the ledger just now
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        return version, {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _check_format(path: Path, found: str | None) -> None:
    if found is None:
        raise LedgerError(f"{path} is no ledger: it names no format version.")
    if found != str(FORMAT):
        raise LedgerError(
            f"The ledger {path} is of format {found} and this version reads format {FORMAT}; "
            "install the version of PluralBench that wrote it."
        )
