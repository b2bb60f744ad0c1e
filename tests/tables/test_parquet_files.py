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


def test_absurd_sizes_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluralbench_tables.parquet_files.MEMORY_BYTES", 50_000_000)
    monkeypatch.setattr("pluralbench_tables.parquet_files.CELLS", 100_000)
    path = tmp_path / "rows.parquet"
    pl.DataFrame({f"c{number}": [1] for number in range(10_001)}).write_parquet(path)
    assert refused(path) == "rows.parquet has 10,001 columns; the maximum is 10,000."
    pl.DataFrame({"a": range(100_001)}).write_parquet(path)
    assert refused(path) == ("rows.parquet has 100,001 rows of 1 columns; the maximum is 100,000 cells; split it.")
    assert repeated(path, 50_000, 2000).stat().st_size < 100_000
    assert refused(path) == ("rows.parquet unpacks to more than 50,000,000 bytes, the maximum; split it.")


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


@pytest.mark.parametrize(
    ("rows", "said"),
    [((9_000, 2_000), r"unpacks to more than \d[\d,]+ bytes"), ((1, 200_000), r"the maximum is 100,000 cells")],
    ids=["texts", "rows"],
)
def test_what_is_made_to_fill_a_disk_is_refused_before_a_part_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: tuple[int, int], said: str
) -> None:
    monkeypatch.setattr("pluralbench_tables.parquet_files.MEMORY_BYTES", 1_000_000)
    monkeypatch.setattr("pluralbench_tables.parquet_files.CELLS", 100_000)
    path = repeated(tmp_path / "rows.parquet", *rows)
    with pytest.raises(TableFileError, match=said):
        next(iter_parquet(path))


def schema_of_depth(depth: int) -> bytes:
    """A file without rows whose column lies so deep, in the compact protocol of Thrift."""
    group = b"\x35\x02\x18\x01a\x15\x02\x00"  # optional, named a, with one child
    root, leaf = b"\x48\x01s\x15\x02\x00", b"\x15\x02\x25\x02\x18\x01x\x00"
    number, count = depth + 2, b""
    while number >= 128:
        count, number = count + bytes([number & 127 | 128]), number >> 7
    schema = b"\x15\x02\x19\xfc" + count + bytes([number]) + root + group * depth + leaf
    footer = schema + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_schema_that_ends_the_process_in_polars_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.parquet"
    path.write_bytes(schema_of_depth(3))
    assert read_parquet(path).columns == ["a"]
    path.write_bytes(schema_of_depth(100_000))
    assert refused(path).startswith("deep.parquet cannot be read: Parquet schema too deeply nested")


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


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"\x1f\x8b"])
def test_what_is_no_parquet(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    assert refused(path).startswith("rows.parquet cannot be read: ")
    assert refused(tmp_path).endswith("cannot be read: it is a folder; give a file.")


def values_of_a_row(path: Path, number: int) -> None:
    """One row, whose list holds one number so many times."""
    values = pa.array([0] * number, pa.int64())
    pq.write_table(pa.table({"a": pa.ListArray.from_arrays([0, number], values)}), path, store_schema=False)


def values_of_one_length(path: Path, number: int) -> None:
    """So many values of a fixed length, of which the file holds one."""
    pq.write_table(pa.table({"a": pa.array([b"x" * 1_000] * number, pa.binary(1_000))}), path, store_schema=False)


@pytest.mark.parametrize("read", [read_parquet, lambda path: next(iter_parquet(path))], ids=["whole", "in parts"])
@pytest.mark.parametrize(
    ("write", "number", "said"),
    [
        (values_of_a_row, 100_001, "has 100,001 values in its lists; the maximum is 100,000; split it."),
        (values_of_one_length, 90_000, "unpacks to more than 50,000,000 bytes, the maximum; split it."),
    ],
)
def test_what_one_row_or_one_length_hides_is_counted_before_it_is_unpacked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path, int], None],
    number: int,
    said: str,
    read: Callable[[Path], object],
) -> None:
    monkeypatch.setattr("pluralbench_tables.parquet_files.MEMORY_BYTES", 50_000_000)
    monkeypatch.setattr("pluralbench_tables.parquet_files.CELLS", 100_000)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", lambda *_, **__: pytest.fail("was unpacked"))
    path = tmp_path / "rows.parquet"
    write(path, number)
    assert path.stat().st_size < 20_000
    with pytest.raises(TableFileError) as caught:
        read(path)
    assert str(caught.value) == f"{path} {said}"


@pytest.mark.parametrize("values", [["1.5"], [["1.5"]], [{"a": [{"b": "1.5"}]}]])
def test_decimals_that_polars_does_not_read_are_refused_without_a_panic(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], values: list[Any]
) -> None:
    wide = pa.decimal256(50, 2)
    kinds = {"str": wide, "list": pa.list_(wide), "dict": pa.struct({"a": pa.list_(pa.struct({"b": wide}))})}
    column = pa.array(values).cast(kinds[type(values[0]).__name__])
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"id": ["1"], "price": column}), path)
    assert "has decimals of 256 bits in `price`" in refused(path)
    assert read_parquet(path, ["id"]).to_dicts() == [{"id": "1"}]
    assert "panicked" not in capfd.readouterr().err
