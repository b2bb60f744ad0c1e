"""The ledger file: what goes in comes out, first answers stay, and what is no ledger is refused."""

import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Ledger, LedgerError, Request, read_ledger, recording
from pluralbench_runs import UserError

FORMAT_KEY = "pluralbench_ledger_format"


def answer(text: str = "fine", *, to: str = "hi", **fields: object) -> Answer:
    made = Answer.to(Request("chat", "somewhere", "m", {"messages": to}, label=to), "answer", text, tokens=(10, 5))
    return replace(made, recorded_at="2026-01-01T00:00:00.000+00:00", **fields)  # type: ignore[arg-type]


def ledger_at(path: Path, *answers: Answer) -> Path:
    with Ledger(path) as ledger:
        ledger.record(*answers)
    return path


def parquet_at(path: Path, *answers: Answer) -> Path:
    with Ledger(path.with_suffix(".sqlite")) as ledger:
        ledger.record(*answers)
        ledger.export(path)
    return path


both_kinds = pytest.mark.parametrize("write", [ledger_at, parquet_at], ids=["SQLite", "Parquet"])
Write = Callable[..., Path]


@given(texts=st.lists(st.text(), max_size=5, unique=True), tokens=st.integers(0, 2**40))
@example(
    texts=["中文", "مرحبا بالعالم", "שלום", "🙂👩‍👩‍👧", "a\u2028b\u2029", "\0", "a\0b", "\r\n", "", "\ufeff", "'; --"],
    tokens=1,
)
@settings(max_examples=30)
def test_sqlite_to_parquet_and_back_keeps_every_field(texts: list[str], tokens: int) -> None:
    counts = {"prompt_tokens": tokens, "cached_tokens": tokens // 2}
    answers = [answer(text, to=text, model=text, finish_reason=text, outcome="refusal", **counts) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        first, second, parquet = (Path(folder) / name for name in ("a", "b", "c.parquet"))
        with Ledger(first) as ledger:
            ledger.record(*answers)
            ledger.export(parquet)
        with Ledger(second) as ledger:
            assert ledger.add_from(parquet) == len(texts)
            assert ledger.find(one.key for one in answers) == {one.key: one for one in answers}
        assert read_ledger(first).equals(read_ledger(second))
        assert read_ledger(first).equals(read_ledger(parquet))


@both_kinds
def test_take_keeps_first_answers(tmp_path: Path, write: Write) -> None:
    mine, theirs, new = answer("mine"), answer("theirs"), answer("new", to="something else")
    other = write(tmp_path / "other.parquet", theirs, new)
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.record(mine)
        ledger.record(theirs)
        assert ledger.add_from(other) == 2
        assert ledger.find([mine.key, new.key]) == {mine.key: mine, new.key: new}
        assert len(ledger) == 2


def test_errors_alone_are_forgotten(tmp_path: Path) -> None:
    error, refusal = answer(to="a", outcome="error"), answer(to="b", outcome="refusal")
    with Ledger(ledger_at(tmp_path / "ledger", error, refusal)) as ledger:
        assert ledger.forget_errors() == 1
        assert ledger.forget_errors() == 0
        assert ledger.find([error.key, refusal.key]) == {refusal.key: refusal}


def test_used_are_the_known_keys_that_were_looked_up(tmp_path: Path) -> None:
    answers = [answer(to=str(number)) for number in range(3)]
    with Ledger(ledger_at(tmp_path / "ledger", *answers)) as ledger:
        assert ledger.used == set()
        many = [f"{number:064}" for number in range(40_000)]  # more than SQLite takes in one query
        assert set(ledger.find([*many, answers[2].key, answers[0].key])) == {answers[0].key, answers[2].key}
        assert ledger.used == {answers[0].key, answers[2].key}
        assert ledger.frame(ledger.used)["label"].sort().to_list() == ["0", "2"]


def test_outcomes_are_known_without_reading_answers(tmp_path: Path) -> None:
    answers = [answer(to=str(number), outcome=outcome) for number, outcome in enumerate(("answer", "error", "length"))]
    with Ledger(ledger_at(tmp_path / "ledger", *answers)) as ledger:
        asked: list[str] = []
        ledger._database.set_trace_callback(asked.append)
        for unknown in (1, 1_000):  # fewer than the file has pages, and more
            wanted = [answers[0].key, *map(str, range(unknown)), answers[1].key]
            assert ledger.outcomes(wanted) == {answers[0].key: "answer", answers[1].key: "error"}
        assert ledger.used == set()
        assert not any("text" in query or "label" in query for query in asked)


def test_equal_content_exports_as_equal_bytes(tmp_path: Path) -> None:
    answers = [answer(f"{number} 文字", to=str(number)) for number in range(300)]
    one = parquet_at(tmp_path / "one.parquet", *answers)
    other = parquet_at(tmp_path / "other.parquet", *reversed(answers))
    assert one.read_bytes() == other.read_bytes()
    assert read_ledger(one)["key"].is_sorted()


def not_a_ledger(path: Path, what: str) -> None:
    match what:
        case "folder":
            path.mkdir()
        case "empty":
            path.touch()
        case "text":
            path.write_text("这不是账本\n" * 500, encoding="utf-8")
        case "other SQLite":
            with closing(sqlite3.connect(path)) as database:
                database.execute("CREATE TABLE cookies (name TEXT)")
        case "other Parquet":
            pl.DataFrame({"text": ["hi"]}).write_parquet(path)
        case "other columns":
            pl.DataFrame({"text": ["hi"]}).write_parquet(path, metadata={FORMAT_KEY: "1"})
        case "half a SQLite":
            ledger_at(path, *(answer("x" * 5_000, to=str(number)) for number in range(9)))
            path.write_bytes(path.read_bytes()[:20_000])
        case "half a Parquet":
            parquet_at(path, answer())
            path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    "what",
    [
        *("missing", "folder", "empty", "text"),
        *("other SQLite", "half a SQLite", "other Parquet", "other columns", "half a Parquet"),
    ],
)
def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "theirs"
    not_a_ledger(path, what)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(LedgerError, match="theirs"):
        read_ledger(path)
    if what not in {"missing", "empty"}:  # of which a ledger can be made
        with pytest.raises(LedgerError, match="theirs"):
            Ledger(path)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_ledger_of_another_format_is_refused(tmp_path: Path) -> None:
    path = ledger_at(tmp_path / "theirs", answer())
    read_ledger(path).write_parquet(tmp_path / "theirs.parquet", metadata={FORMAT_KEY: "2"})
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    message = r"theirs.* has format 2, and this version reads format 1; install the version"
    for read, file in ((read_ledger, path), (Ledger, path), (read_ledger, tmp_path / "theirs.parquet")):
        with pytest.raises(LedgerError, match=message):
            read(file)


def test_work_that_fails_after_rejections_says_how_to_ask_again(tmp_path: Path) -> None:
    rejected = answer("no", outcome="error", finish_reason="413")

    def work() -> None:
        with recording(tmp_path, []) as calls:
            calls.ledger.record(rejected)
            calls.ledger.find([rejected.key])
            raise UserError("Nothing is left.")

    with pytest.raises(UserError, match=r"^Nothing is left\. The server rejected 1 of the calls; `retry_errors=True`"):
        work()


def test_a_value_of_another_type_than_its_column_is_refused(tmp_path: Path) -> None:
    path = ledger_at(tmp_path / "l.sqlite", answer())
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE calls SET text = x'8000'")
        database.commit()
    with pytest.raises(LedgerError, match="another type"):
        read_ledger(path)


def test_answers_outlive_the_process_and_count(tmp_path: Path) -> None:
    path = ledger_at(tmp_path / "ledger", answer(to="a"), answer(to="b", prompt_tokens=1, completion_tokens=2))
    with Ledger(path) as ledger:
        assert (len(ledger), ledger.usage()) == (2, (11, 7))
    with Ledger(tmp_path / "new") as ledger:
        assert (len(ledger), ledger.usage(), ledger.frame().height) == (0, (0, 0), 0)


def test_one_ledger_takes_several_writers_at_once(tmp_path: Path) -> None:
    def write(writer: int) -> None:
        for number in range(25):
            with Ledger(tmp_path / "ledger") as ledger:
                ledger.record(answer(to=f"{writer} {number}"), answer(to=f"shared {number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert read_ledger(tmp_path / "ledger").height == 125


def test_an_answer_that_cannot_be_recorded_does_not_block_the_next(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(UnicodeEncodeError):
            ledger.record(replace(answer(), text="half a character: \ud83d"))
        ledger.record(answer("fine"))
        assert len(ledger) == 1


def test_a_ledger_whose_making_was_killed_is_made_anew(tmp_path: Path) -> None:
    """Between SQLite's first page and the end of that transaction there is a journal that undoes it."""
    path = tmp_path / "l.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    magic, pages, sector, page = bytes.fromhex("d9d505f920a163d7"), 0, 512, 4096
    numbers = b"".join(number.to_bytes(4, "big") for number in (0, 1, pages, sector, page))
    path.with_name("l.sqlite-journal").write_bytes((magic + numbers).ljust(sector, b"\0"))
    with Ledger(path) as ledger:
        ledger.record(answer())
        assert len(ledger) == 1
    assert read_ledger(path).height == 1
