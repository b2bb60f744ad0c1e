"""The ledger: every recorded answer by the key of its request. SQLite while working, Parquet when published."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pluralbench_runs import UserError

from pluralbench_calls.errors import CallsError, LedgerError
from pluralbench_calls.ledger_files import (
    ADAPTED,
    AT_ONCE,
    COLUMNS,
    FORMAT,
    FORMAT_KEY,
    OUTCOMES,
    Row,
    check_sqlite,
    hardened,
    ledger_rows,
    rows_to_frame,
    translate_sqlite_errors,
    validate_rows,
)
from pluralbench_calls.records import Answer

if TYPE_CHECKING:
    import polars as pl

NAMES = ", ".join(COLUMNS)


class Ledger:
    """Recorded answers in a SQLite file; a context manager.

    An answer is committed as it arrives (write-ahead log, normal synchronisation): killing the process loses
    none; a power cut can lose the last ones but never damages the file.

    used: keys of the answers that were looked up since it was opened, which are what a build depends on.
    has_new_calls: whether it holds answers that were asked for here, rather than taken from another ledger just now.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the ledger at `path`. Raises `LedgerError` for another format version or another file."""
        self.used: set[str] = set()
        self.path = path
        if path.exists():
            check_sqlite(path)
        with translate_sqlite_errors(path):
            # Where an event loop runs already, `ask` works in a thread of its own while this one waits for it.
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._make()
            except BaseException:
                self._database.close()
                raise
        self.has_new_calls = bool(self._rows("SELECT 1 FROM calls LIMIT 1"))

    def _make(self) -> None:
        hardened(self._database)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        columns = ", ".join(f"{name} {'INTEGER' if kind is int else 'TEXT'} NOT NULL" for name, kind in COLUMNS.items())
        with self._transaction():
            self._database.execute(f"CREATE TABLE IF NOT EXISTS calls ({columns}, PRIMARY KEY (key)) WITHOUT ROWID")
            if ADAPTED not in {row[1] for row in self._database.execute("PRAGMA table_info(calls)")}:
                self._database.execute(f"ALTER TABLE calls ADD COLUMN {ADAPTED} TEXT NOT NULL DEFAULT ''")
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
        """Record answers, for good: a key that is known keeps its first answer."""
        self.has_new_calls |= bool(answers)
        with translate_sqlite_errors(self.path), self._transaction():
            self._insert([_as_row(answer) for answer in answers])

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        statement = f"INSERT INTO calls ({NAMES}) VALUES ({marks}) ON CONFLICT (key) DO NOTHING"  # noqa: S608 - no input in it
        self._database.executemany(statement, rows)

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """The recorded answers among `keys`."""
        found = {row[0]: Answer(*row) for part in _slices(keys) for row in self._recorded(part)}
        self.used |= found.keys()
        return found

    def outcomes(self, keys: Iterable[str]) -> dict[str, str]:
        """What came of those among `keys` that are recorded; their answers are neither made objects nor used."""
        wanted = set(keys)
        pages: int = self._rows("PRAGMA page_count")[0][0]
        with translate_sqlite_errors(self.path):
            # To look a key up reads a page and more, so where there are fewer pages than keys all are read instead.
            if pages < len(wanted):
                every = self._database.execute("SELECT key, outcome FROM calls")
                found = {key: outcome for key, outcome in every if key in wanted}
            else:
                found = dict(row for part in _slices(wanted) for row in self._rows_of("key, outcome", part))
        if not OUTCOMES.issuperset(found.values()):
            self.find(found)  # which says of which call it is
        return found

    def _recorded(self, keys: Sequence[str]) -> list[Row]:
        """The rows of these keys, a slice of `_slices`."""
        return validate_rows(self._rows_of(NAMES, keys), self.path)

    def _rows_of(self, names: str, keys: Sequence[str]) -> list[Row]:
        marks = ", ".join("?" * len(keys))
        return self._rows(f"SELECT {names} FROM calls WHERE key IN ({marks})", keys)  # noqa: S608 - the same

    def forget_errors(self) -> int:
        """Forget the calls that the server refused, so that they are asked again; how many there were."""
        with translate_sqlite_errors(self.path):
            return self._database.execute("DELETE FROM calls WHERE outcome = 'error'").rowcount

    def has_answer_from(self, provider: str) -> bool:
        """Whether any call to this provider was answered, and not rejected."""
        one = "SELECT 1 FROM calls WHERE provider = ? AND outcome <> 'error' LIMIT 1"
        return bool(self._rows(one, (provider,)))

    def rejected(self) -> int:
        """How many of the calls that were looked up the server refused."""
        return sum(outcome == "error" for outcome in self.outcomes(self.used).values())

    def usage(self) -> tuple[int, int]:
        """All tokens so far, of prompts and of completions."""
        # `total` gives a float, which no number of tokens that a damaged ledger holds can overflow.
        prompts, completions = self._rows("SELECT total(prompt_tokens), total(completion_tokens) FROM calls")[0]
        return int(prompts), int(completions)

    def frame(self, keys: Iterable[str] | None = None) -> "pl.DataFrame":
        """The recorded answers (among `keys`, if given), one row each, sorted by key."""
        import polars as pl  # noqa: PLC0415 - a command's --help waits for it otherwise

        return pl.concat([pl.DataFrame(schema=COLUMNS), *self._parts(keys)])

    def export(self, path: Path, keys: Iterable[str] | None = None) -> None:
        """Write the answers (among `keys`, if given) as Parquet, sorted by key and some in memory at a time."""
        import polars as pl  # noqa: PLC0415 - the same
        from polars.io.plugins import register_io_source  # noqa: PLC0415 - the same

        wanted = None if keys is None else set(keys)
        with translate_sqlite_errors(self.path):
            adapted = self._database.execute(f"SELECT key FROM calls WHERE {ADAPTED} <> ''")  # noqa: S608 - the same
            is_adapted = any(wanted is None or key in wanted for (key,) in adapted)
        names = [name for name in COLUMNS if is_adapted or name != ADAPTED]
        failed: list[LedgerError] = []

        def parts(*_: object) -> "Iterator[pl.DataFrame]":
            try:
                yield from (part.select(names) for part in self._parts(wanted))
            except LedgerError as error:  # of which polars would make another
                failed.append(error)

        source = register_io_source(parts, schema=pl.Schema({name: COLUMNS[name] for name in names}))
        source.sink_parquet(path, metadata={FORMAT_KEY: str(FORMAT)})
        if failed:
            raise failed[0]

    def _parts(self, keys: Iterable[str] | None) -> "Iterator[pl.DataFrame]":
        """The recorded answers (among `keys`, if given) sorted by key, few of them objects of Python at a time."""
        if keys is not None:
            yield from (rows_to_frame(rows).sort("key") for part in _slices(keys) if (rows := self._recorded(part)))
            return
        with translate_sqlite_errors(self.path):
            every = self._database.execute(f"SELECT {NAMES} FROM calls ORDER BY key")  # noqa: S608 - the same
            while rows := every.fetchmany(AT_ONCE):
                yield rows_to_frame(validate_rows(rows, self.path))

    def add_from(self, path: Path) -> int:
        """Add the answers of another ledger (SQLite or Parquet) that are not known here; how many it holds.

        Raises `LedgerError` when `path` is no ledger of this format version, or damaged; then nothing is added.
        """
        held = 0
        with translate_sqlite_errors(self.path), self._transaction():
            for rows in ledger_rows(path):
                self._insert(rows)
                held += len(rows)
        return held


def _slices(keys: Iterable[str]) -> Iterator[list[str]]:
    """The keys, each once, in the order in which the table has them, so that each of its pages is read once."""
    wanted = sorted(set(keys))
    for start in range(0, len(wanted), AT_ONCE):
        yield wanted[start : start + AT_ONCE]


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
                keep = ledger.has_new_calls
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
                    f"{error} The server rejected {rejected:,} of its calls: --retry-errors asks them again.",
                )
            raise
        ledger.export(calls.extract, ledger.used)
        calls.new = len(ledger) - before
