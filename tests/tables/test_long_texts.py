"""A text that is as long as any may be is read, and one that is longer is refused by whatever reads it."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pluralbench_tables import TableFileError, check_texts, parse_json, read_csv, read_jsonl, read_objects, read_parquet
from pluralbench_tables.limits import TEXT_CHARACTERS

Read = Callable[[Path, str], object]
"""Writes a table whose third row holds this text, into a folder, and reads it."""


def rows(text: str) -> list[dict[str, str]]:
    return [{"id": "1", "said": "a"}, {"id": "2", "said": ""}, {"id": "3", "said": text}]


def csv_table(folder: Path, text: str) -> object:
    path = folder / "rows.csv"
    path.write_text(f"id,said\n1,a\n2,\n3,{text}\n", encoding="utf-8")
    return read_csv(path)["said"][2]


def csv_of_many_lines(folder: Path, text: str) -> object:
    path = folder / "rows.csv"
    lines = text.replace(text[:50], text[:49] + "\n")
    path.write_text(f'id,said\n1,a\n2,\n3,"{lines}"\n', encoding="utf-8")
    return read_csv(path)["said"][2].replace("\n", "x")


def jsonl(folder: Path, text: str) -> object:
    path = folder / "rows.jsonl"
    pl.DataFrame(rows(text)).write_ndjson(path)
    return read_jsonl(path)[2]["said"]


def json_array(folder: Path, text: str) -> object:
    path = folder / "rows.json"
    pl.DataFrame(rows(text)).write_json(path)
    return read_objects(path)[2]["said"]


def json_within(_: Path, text: str) -> object:
    value = parse_json('[{}, 1, {"id": 1, "said": [[{"b": "' + text + '"}]]}]', "rows")
    return value[2]["said"][0][0]["b"]  # type: ignore[index,call-overload]


def parquet(folder: Path, text: str) -> object:
    path = folder / "rows.parquet"
    pl.DataFrame(rows(text)).write_parquet(path, row_group_size=2)
    return read_parquet(path)["said"][2]


def plain_parquet(folder: Path, text: str) -> object:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows(text)), path, use_dictionary=False)
    return read_parquet(path)["said"][2]


def nested_parquet(folder: Path, text: str) -> object:
    path = folder / "rows.parquet"
    said = [[{"text": "a"}], [], [{"text": "b"}, {"text": text}]]
    pl.DataFrame({"id": ["1", "2", "3"], "said": said}).write_parquet(path)
    return read_parquet(path)["said"][2][1]["text"]


def frame(_: Path, text: str) -> object:
    check_texts(pa.Table.from_pylist(rows(text)), "rows")
    return text


EXACT = [jsonl, json_array, json_within, parquet, plain_parquet, nested_parquet, frame]


@pytest.mark.parametrize("read", [csv_table, csv_of_many_lines, *EXACT], ids=lambda read: read.__name__)
def test_a_text_has_a_limit(tmp_path: Path, read: Read) -> None:
    longest = "x" * TEXT_CHARACTERS
    assert read(tmp_path, longest) == longest
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, longest + "x")
    said = str(caught.value).removeprefix(f"{tmp_path}/")
    assert said.startswith("rows")
    assert any(place in said for place in ("row 3: `said` has a text of ", "line 3: `said` has", "line 4: `said` has"))
    assert said.endswith(
        " has a text of 5,000,001 characters, more than the maximum of 5,000,000; shorten or remove it."
        if read in EXACT
        else " has a text of more than 5,000,000 characters, the maximum; shorten or remove it, "
        "or close its quotation mark."
    )


def test_characters_count_and_not_bytes(tmp_path: Path) -> None:
    text = "茶" * (TEXT_CHARACTERS // 2)
    for read in (parquet, jsonl):
        assert read(tmp_path, text) == text


@pytest.mark.parametrize("kept", [False, True], ids=["as texts", "as a dictionary"])
def test_a_repeated_text_is_measured_before_it_is_unpacked(tmp_path: Path, *, kept: bool) -> None:
    path = tmp_path / "rows.parquet"

    def written(length: int, times: int) -> Path:
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array(["x" * length]))
        pq.write_table(pa.table({"id": range(times), "said": texts}), path, store_schema=kept, write_statistics=False)
        return path

    with pytest.raises(TableFileError, match=r"row 1: `said` has a text of 5,000,001 characters"):
        read_parquet(written(TEXT_CHARACTERS + 1, 1024))
    with pytest.raises(TableFileError, match=r"unpacks to more than 3,000,000,000 bytes"):
        read_parquet(written(TEXT_CHARACTERS, 1024))
    found = read_parquet(written(100_000, 30))
    assert found["said"].cast(pl.String).to_list() == ["x" * 100_000] * 30
