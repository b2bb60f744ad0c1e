"""Parquet as polars has it, and damaged or hostile files refused."""

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pluralbench_tables import TableFileError, iter_parquet, read_parquet

TABLES: dict[str, list[Any]] = {
    "text": ["a", None, "é"],
    "lists": [["a"], None, []],
    "objects": [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}],
    "posts": [[{"id": "p", "text": "t"}], [], None],
    "nothing": [None, None, None],
    "numbers": [0.5, float("nan"), None],
    "whole": [1, None, 2**40],
    "days": [dt.date(2020, 1, 1)] * 3,
}


def refused(path: Path, *columns: str) -> str:
    with pytest.raises(TableFileError) as caught:
        read_parquet(path, columns or None)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize("name", TABLES)
def test_rows_and_types_are_those_of_polars(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({name: TABLES[name]})
    for write in (frame.write_parquet, lambda path: pq.write_table(pa.table({name: TABLES[name]}), path)):
        write(path)
        found = read_parquet(path)
        assert found.schema == frame.schema
        assert found.equals(frame)


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({"a": range(5000), "b": ["x"] * 5000, "c": [None] * 5000})
    frame.write_parquet(path, row_group_size=777)
    assert read_parquet(path).equals(frame)
    assert read_parquet(path, ["b", "a"]).equals(frame.select("b", "a"))
    assert read_parquet(path, ["b"]).n_chunks() == 1
    assert refused(path, "b", "d") == "rows.parquet has no column `d`; it has a, b, c."


def repeated(path: Path, length: int, times: int, **options: Any) -> Path:
    """Writes one text so many times, which takes hardly any room in the file."""
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array(["x" * length]))
    pq.write_table(pa.table({"a": rows}), path, store_schema=False, **options)
    return path


def test_parts_have_a_limit_and_the_file_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({"a": range(5_000), "b": [f"{number**9:x}" for number in range(5_000)]})
    frame.write_parquet(path, row_group_size=2_000)
    for limit in ("parquet_files.CELLS", "parquet_files.MEMORY_BYTES", "text_files.FILE_BYTES"):
        monkeypatch.setattr(f"pluralbench_tables.{limit}", 1_000)
    parts = list(iter_parquet(path, ["b"]))
    assert max(part.height for part in parts) <= 1024
    assert pl.concat(parts).equals(frame.select("b"))
    assert [part.schema for part in iter_parquet(path)] == [frame.schema] * 5
    frame.clear().write_parquet(path)
    assert [part.schema for part in iter_parquet(path)] == [frame.schema]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"\x1f\x8b"])
def test_what_is_no_parquet(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    assert refused(path).startswith("rows.parquet cannot be read: ")
    assert refused(tmp_path).endswith("cannot be read: it is a folder; give a file.")


def values_of_a_row(path: Path) -> None:
    """One row, whose list holds one number many times."""
    values = pa.array([0] * 100_001, pa.int64())
    pq.write_table(pa.table({"a": pa.ListArray.from_arrays([0, 100_001], values)}), path, store_schema=False)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: repeated(path, 50_000, 2000), "unpacks to more than 50,000,000 bytes, the maximum; split it."),
        (lambda path: repeated(path, 1, 100_001), "has 100,001 values; the maximum is 100,000; split it."),
        (values_of_a_row, "has 100,001 values; the maximum is 100,000; split it."),
    ],
    ids=["texts", "rows", "a list"],
)
def test_what_would_fill_all_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object], message: str
) -> None:
    monkeypatch.setattr("pluralbench_tables.parquet_files.MEMORY_BYTES", 50_000_000)
    monkeypatch.setattr("pluralbench_tables.parquet_files.CELLS", 100_000)
    path = tmp_path / "rows.parquet"
    write(path)
    assert path.stat().st_size < 100_000
    assert refused(path) == f"rows.parquet {message}"


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame(TABLES).write_parquet(path)
    whole, draw = path.read_bytes(), random.Random(7)
    said = []
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.choice([0, 1, 127, 128, 255])
        path.write_bytes(data)
        try:
            read_parquet(path)
        except TableFileError as error:
            said.append(str(error))
    assert len(said) > 100
    assert all(sentence.startswith(str(path)) and "\n" not in sentence for sentence in said)


def test_columns_that_are_not_needed_are_null(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [["x"], None], "b": ["y", "z"], "c": [1, 2]})
    frame.write_parquet(tmp_path / "t.parquet")
    read = read_parquet(tmp_path / "t.parquet", needed={"b"}.__contains__)
    assert read.columns == ["a", "b", "c"]
    assert read["b"].to_list() == ["y", "z"]
    assert read.select("a", "c").null_count().row(0) == (2, 2)
