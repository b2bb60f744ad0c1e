"""A file that is said to be a ledger, and holds whatever somebody put there: a sentence, and no row is believed."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Ledger, LedgerError, Request, read_ledger, recording
from pluralbench_runs import UserError

FORMAT_KEY = "pluralbench_ledger_format"
ENDLESS = "CREATE VIEW calls AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
DAMAGED, NO_LEDGER = "is damaged", "is not a ledger"


def answer(number: int) -> Answer:
    request = Request("chat", "somewhere", "m", {"messages": str(number)}, label=str(number))
    return Answer.to(request, "answer", "fine", tokens=(10, 5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of three calls, where `recording` looks for it."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.record(*(answer(number) for number in range(3)))
    return tmp_path / "ledger.sqlite"


def take(path: Path) -> None:
    with Ledger(path.with_name("mine")) as ledger:
        ledger.add_from(path)


def resume(path: Path) -> None:
    with recording(path.parent, []) as calls:
        calls.ledger.find(answer(number).key for number in range(3))
        calls.ledger.record(answer(3))


ways = pytest.mark.parametrize("use", [read_ledger, take, resume])
Use = Callable[[Path], object]


@ways
@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["UPDATE calls SET text = x'ff00'"], DAMAGED),
        (["UPDATE calls SET text = CAST(x'eda080' AS TEXT)"], DAMAGED),
        (["UPDATE calls SET prompt_tokens = 'many'"], DAMAGED),
        (["UPDATE calls SET prompt_tokens = -1"], DAMAGED),
        (["UPDATE calls SET completion_tokens = 9223372036854775807"], DAMAGED),
        (["UPDATE calls SET outcome = 'sure'"], DAMAGED),
        (["UPDATE calls SET text = hex(zeroblob(6000000))"], DAMAGED),
        (["ALTER TABLE calls RENAME TO c", ENDLESS], NO_LEDGER),
        (["ALTER TABLE calls RENAME COLUMN text TO words"], NO_LEDGER),
        (["CREATE TRIGGER t BEFORE INSERT ON calls BEGIN DELETE FROM calls; END"], NO_LEDGER),
        (["DROP TABLE calls", "CREATE VIRTUAL TABLE calls USING fts5(key, text)"], NO_LEDGER),
        (["PRAGMA user_version = 7"], "has format 7"),
    ],
    ids=lambda value: None if isinstance(value, str) else value[-1][:50],
)
def test_sqlite_that_a_ledger_is_not(path: Path, use: Use, statements: list[str], said: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)
    with pytest.raises(LedgerError) as refused:
        use(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert len(str(refused.value).replace(str(path), "")) < 200


@ways
@pytest.mark.parametrize("kind", ["folder", "pipe", "link to itself"])
def test_a_path_that_is_no_file(path: Path, use: Use, kind: str) -> None:
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    with pytest.raises(LedgerError, match=str(path)):
        use(path)


@ways
@pytest.mark.parametrize("beside", ["wal", "shm", "journal"])
def test_what_lies_beside_a_ledger_is_no_traceback(path: Path, use: Use, beside: str) -> None:
    path.with_name(f"{path.name}-{beside}").write_bytes(bytes(range(256)) * 99)
    with contextlib.suppress(LedgerError):
        use(path)
    path.with_name(f"{path.name}-{beside}").unlink(missing_ok=True)
    os.mkfifo(path.with_name(f"{path.name}-{beside}"))
    if path.read_bytes().startswith(b"SQLite"):
        with pytest.raises(LedgerError, match=f"-{beside} is not a regular file"):
            use(path)


@pytest.mark.parametrize(
    "column",
    [
        pl.lit("sure").alias("outcome"),
        pl.lit(-1, pl.Int64).alias("prompt_tokens"),
        pl.lit(2**60, pl.Int64).alias("completion_tokens"),
        pl.lit(1.5).alias("completion_tokens"),
        pl.lit(["a"]).alias("text"),
        pl.lit("x" * 11_000_000).alias("text"),
        pl.lit("").alias("more"),
        pl.lit(None, pl.String).alias("text"),
    ],
    ids=lambda column: str(column)[:40],
)
def test_parquet_that_a_ledger_is_not(path: Path, column: pl.Expr) -> None:
    frame = read_ledger(path).head(1).with_columns(column)
    other = path.with_name("other.parquet")
    frame.write_parquet(other, metadata={FORMAT_KEY: "1"})
    with pytest.raises(LedgerError, match="other"):
        read_ledger(other)


def test_parquet_of_another_format(path: Path) -> None:
    other = path.with_name("other.parquet")
    read_ledger(path).write_parquet(other, metadata={FORMAT_KEY: "2"})
    said = r"other\.parquet has format 2, and this version reads format 1; install the version"
    with pytest.raises(LedgerError, match=said):
        read_ledger(other)


@given(place=st.floats(0, 0.999), byte=st.integers(0, 255), cut=st.booleans())
@settings(max_examples=25)
def test_bytes_that_changed_give_a_ledger_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, place: float, byte: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.record(*(answer(number) for number in range(9)))
    content = bytearray(path.read_bytes())
    here = int(place * len(content))
    content[here] = byte
    path.write_bytes(content[:here] if cut else content)
    for use in (read_ledger, take, resume):
        with contextlib.suppress(LedgerError):
            use(path)


def test_work_that_fails_after_rejections_says_how_to_ask_again(tmp_path: Path) -> None:
    rejected = Answer.to(Request("chat", "somewhere", "m", {"messages": "a"}), "error", "no", finish_reason="413")

    def work() -> None:
        with recording(tmp_path, []) as calls:
            calls.ledger.record(rejected)
            calls.ledger.find([rejected.key])
            raise UserError("Nothing is left.")

    with pytest.raises(UserError) as failed:
        work()
    assert (
        str(failed.value)
        == "Nothing is left. The server rejected 1 of the calls; `retry_errors=True` sends them again."
    )
