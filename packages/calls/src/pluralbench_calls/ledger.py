"""The ledger: recorded answers by the key of their request. SQLite while working, Parquet when published."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pluralbench_runs import UserError

from pluralbench_calls.errors import CallsError, LedgerError
from pluralbench_calls.ledger_files import (
    CHUNK_ROWS,
    COLUMNS,
    FORMAT,
    FORMAT_KEY,
    OPTIONAL,
    Row,
    check_sqlite,
    ledger_rows,
    rows_to_frame,
    translate_sqlite_errors,
)
from pluralbench_calls.records import NOT_ANSWERED, Answer

if TYPE_CHECKING:
    import polars as pl

NAMES = ", ".join(COLUMNS)
BM25 = "bm25s"  # provider of scores that are computed again in no time
FAILED = f"calls.outcome = 'error' AND calls.finish_reason = '{NOT_ANSWERED}'"


class Ledger:
    """Recorded answers in a SQLite file; a context manager.

    An answer is committed as it arrives (write-ahead log, normal synchronization). A killed process loses no answer; a
    power failure can lose the last ones, but never damages the file.

    Attributes:
        path: The SQLite file.
        used: Keys of the answers that were looked up since the ledger was opened; a build depends on these.
        has_new_calls: Whether the ledger had answers when it was opened or recorded any since, other than those of
            `add_from`.
    """

    def __init__(self, path: Path) -> None:
        """Open or create a ledger. Raises `LedgerError` if the file is not a ledger of this format version."""
        self.used: set[str] = set()
        self.path = path
        if path.exists():
            check_sqlite(path)
        with translate_sqlite_errors(path):
            # Inside a running event loop, `ask` uses this connection in another thread while this one waits.
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._create_table()
            except BaseException:
                self._database.close()
                raise
        self.has_new_calls = bool(self._rows("SELECT 1 FROM calls LIMIT 1"))

    def _create_table(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        columns = ", ".join(f"{name} {'INTEGER' if kind is int else 'TEXT'} NOT NULL" for name, kind in COLUMNS.items())
        with self._transaction():
            self._database.execute(f"CREATE TABLE IF NOT EXISTS calls ({columns}, PRIMARY KEY (key)) WITHOUT ROWID")
            self._database.execute(f"PRAGMA user_version = {FORMAT}")

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        with translate_sqlite_errors(self.path):
            return self._database.execute(query, values).fetchall()

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
        count: int = self._rows("SELECT count(*) FROM calls")[0][0]
        return count

    def record(self, *answers: Answer) -> None:
        """Record answers. A key that is already recorded keeps its first answer, unless the server never answered."""
        self.has_new_calls |= bool(answers)
        with translate_sqlite_errors(self.path), self._transaction():
            # `astuple` would deep-copy each text.
            self._insert([tuple(getattr(answer, name) for name in COLUMNS) for answer in answers])

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        new = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS)
        statement = f"INSERT INTO calls ({NAMES}) VALUES ({marks}) ON CONFLICT (key) DO UPDATE SET {new} WHERE {FAILED}"  # noqa: S608 - column names only
        self._database.executemany(statement, rows)

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return the recorded answers among `keys`, and mark them as used."""
        answers = {row[0]: Answer(*row) for part in _slices(keys) for row in self._rows_of(NAMES, part)}
        self.used |= answers.keys()
        return answers

    def outcomes(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the outcomes of the recorded answers among `keys`, without marking them as used."""
        wanted = set(keys)
        pages: int = self._rows("PRAGMA page_count")[0][0]
        with translate_sqlite_errors(self.path):
            # A lookup reads at least one page, so if there are fewer pages than keys, all rows are read instead.
            if pages < len(wanted):
                rows = self._database.execute("SELECT key, outcome FROM calls")
                outcomes = {key: outcome for key, outcome in rows if key in wanted}
            else:
                outcomes = dict(row for part in _slices(wanted) for row in self._rows_of("key, outcome", part))
        return outcomes

    def failed(self) -> set[str]:
        """Return the keys of the calls that the server did not answer in any try; see `NOT_ANSWERED`."""
        return {key for (key,) in self._rows(f"SELECT key FROM calls WHERE {FAILED}")}  # noqa: S608 - the same

    def uncounted(self, providers: Iterable[str] | None = None) -> int:
        """Count the answers without token counts of these providers (default: all); rankings by BM25 are free."""
        query = "SELECT provider FROM calls WHERE outcome <> 'error' AND prompt_tokens = 0 AND completion_tokens = 0"
        wanted = None if providers is None else set(providers)
        return sum(wanted is None or provider in wanted for (provider,) in self._rows(query))

    def _rows_of(self, names: str, keys: Sequence[str]) -> list[Row]:
        marks = ", ".join("?" * len(keys))
        return self._rows(f"SELECT {names} FROM calls WHERE key IN ({marks})", keys)  # noqa: S608 - the same

    def forget_errors(self) -> int:
        """Delete the calls that the server rejected, so that they are sent again, and return their number."""
        with translate_sqlite_errors(self.path):
            return self._database.execute("DELETE FROM calls WHERE outcome = 'error'").rowcount

    def has_answer_from(self, provider: str) -> bool:
        """Whether any call to this provider was answered rather than rejected."""
        one = "SELECT 1 FROM calls WHERE provider = ? AND outcome <> 'error' LIMIT 1"
        return bool(self._rows(one, (provider,)))

    def has_only(self, provider: str) -> bool:
        """Whether no call is to another provider."""
        return not self._rows("SELECT 1 FROM calls WHERE provider <> ? LIMIT 1", (provider,))

    def rejected(self) -> int:
        """Count the used calls that the server rejected."""
        return sum(outcome == "error" for outcome in self.outcomes(self.used).values())

    def usage(self) -> tuple[int, int]:
        """Sum all prompt tokens and all completion tokens."""
        # `total` returns a float, which cannot overflow even in a damaged ledger.
        prompts, completions = self._rows("SELECT total(prompt_tokens), total(completion_tokens) FROM calls")[0]
        return int(prompts), int(completions)

    def cached_tokens(self) -> int:
        """Sum the prompt tokens from the servers' prefix caches."""
        return int(self._rows("SELECT total(cached_tokens) FROM calls")[0][0])

    def frame(self, keys: Iterable[str] | None = None) -> "pl.DataFrame":
        """Return the recorded answers (default: all) as a frame, sorted by key."""
        import polars as pl

        return pl.concat([pl.DataFrame(schema=COLUMNS), *self._parts(keys)])

    def export(self, path: Path, keys: Iterable[str] | None = None) -> None:
        """Write the recorded answers (default: all) as Parquet, sorted by key, with few in memory at a time."""
        import polars as pl
        from polars.io.plugins import register_io_source

        wanted = None if keys is None else set(keys)
        with translate_sqlite_errors(self.path):
            names = [name for name in COLUMNS if name not in OPTIONAL or self._has_values(name, wanted)]
        failed: list[LedgerError] = []

        def parts(*_: object) -> "Iterator[pl.DataFrame]":
            try:
                yield from (part.select(names) for part in self._parts(wanted))
            except LedgerError as error:  # polars would replace it by its own error
                failed.append(error)

        source = register_io_source(parts, schema=pl.Schema({name: COLUMNS[name] for name in names}))
        source.sink_parquet(path, metadata={FORMAT_KEY: str(FORMAT)})
        if failed:
            raise failed[0]

    def _has_values(self, name: str, wanted: set[str] | None) -> bool:
        query = f"SELECT key FROM calls WHERE {name} <> {OPTIONAL[name]!r}"  # noqa: S608 - the same
        return any(wanted is None or key in wanted for (key,) in self._database.execute(query))

    def _parts(self, keys: Iterable[str] | None) -> "Iterator[pl.DataFrame]":
        if keys is not None:
            yield from (
                rows_to_frame(rows).sort("key") for part in _slices(keys) if (rows := self._rows_of(NAMES, part))
            )
            return
        with translate_sqlite_errors(self.path):
            cursor = self._database.execute(f"SELECT {NAMES} FROM calls ORDER BY key")  # noqa: S608 - the same
            while rows := cursor.fetchmany(CHUNK_ROWS):
                yield rows_to_frame(rows)

    def add_from(self, path: Path) -> int:
        """Add the answers of another ledger (SQLite or Parquet) that are not recorded here; return how many it has.

        Raises:
            LedgerError: `path` is not a ledger of this format version, or is damaged. Nothing is added then.
        """
        count = 0
        with translate_sqlite_errors(self.path), self._transaction():
            for rows in ledger_rows(path):
                self._insert(rows)
                count += len(rows)
        return count


def _slices(keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield slices of the unique keys in the order of the table, so that each of its pages is read once."""
    wanted = sorted(set(keys))
    for start in range(0, len(wanted), CHUNK_ROWS):
        yield wanted[start : start + CHUNK_ROWS]


@contextmanager
def working_ledger(path: Path | Ledger) -> Iterator[Ledger]:
    """Open a ledger, and delete it at the end if it has no new calls, so that it does not affect a later run.

    One that is already open is left open.
    """
    if isinstance(path, Ledger):
        yield path
        return
    keep = True  # a file that cannot be opened is not deleted
    try:
        with Ledger(path) as ledger:
            try:
                yield ledger
            finally:
                keep = ledger.has_new_calls
    finally:
        if not keep:
            path.unlink(missing_ok=True)


@dataclass
class Recording:
    """The calls of one piece of work, and the Parquet file with those that were used, which is written at the end."""

    ledger: Ledger
    extract: Path
    new: int = 0


@contextmanager
def recording(work: Path, known: Iterable[Path], *, retry_errors: bool = False) -> Iterator[Recording]:
    """Record the calls of a piece of work in its folder, and reuse the answers of other ledgers.

    If the work fails for another reason than its calls, for example because no row is left, the error also counts the
    rejected calls. `retry_errors` sends calls again that the server rejected.
    """
    with working_ledger(work / "ledger.sqlite") as ledger:
        for path in known:
            ledger.add_from(path)
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
                    f"{error} The server rejected {rejected:,} of the calls; `retry_errors=True` sends them again.",
                )
            raise
        finally:
            if ledger.has_only(BM25):
                ledger.has_new_calls = False  # a build that failed before its first call may be run with other settings
        ledger.export(calls.extract, ledger.used)
        calls.new = len(ledger) - before
