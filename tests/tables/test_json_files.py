"""JSON within limits, and frames of its rows."""

from pathlib import Path
from typing import Any

import pytest
from pluralbench_tables import TableFileError, frame_from_rows, parse_json, read_objects


def refused(text: str) -> str:
    with pytest.raises(TableFileError) as caught:
        parse_json(text, "x.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "x.json: this is not JSON (Expecting property name enclosed in double quotes at column 2)."),
        ('{"a": NaN}', "x.json: NaN is not a JSON number; write null."),
        ('{"a": 1e999}', "x.json: this has a number that is too large."),
        (f'{{"a": {2**63}}}', "x.json: this has an integer beyond 64 bits; write it as a string."),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "x.json: an object has the key 'c' twice."),
        ('["\\ud800"]', "x.json: this has half a character (a lone surrogate); fix the text."),
        ("[" * 51 + "1" + "]" * 51, "x.json: this is nested deeper than 50 levels, the maximum."),
    ],
)
def test_what_not_every_reader_takes_is_refused(text: str, sentence: str) -> None:
    assert refused(text) == sentence


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("rows.jsonl", "{}\n"),
        ("rows.json", "{},"),
        ("rows.jsonl", '{"a":[[]]}\n'),
        ("rows.json", '{"a":"b"},'),
        ("rows.json", '{"a":["b","b"]},'),
    ],
)
def test_the_memory_of_all_rows_of_a_file_together_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, unit: str
) -> None:
    limit = 1_000_000
    monkeypatch.setattr("pluralbench_tables.json_files.JSON_MEMORY_BYTES", limit)
    path = tmp_path / name
    row = unit.rstrip(",\n")
    texts = {number: f"[{unit * number}{row}]" if name == "rows.json" else unit * number for number in (50, 10_000)}
    path.write_text(texts[50], encoding="utf-8")
    assert len(read_objects(path)) in {50, 51}
    path.write_text(texts[10_000], encoding="utf-8")
    with pytest.raises(TableFileError, match=r"the values take more than 1,000,000 bytes of memory; split the file\.$"):
        read_objects(path)


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"a": value}
    return value


def test_a_frame_has_limits_of_its_own() -> None:
    assert frame_from_rows([{"x": nested(1, 40)}]).shape == (1, 1)
    for row in ({"x": nested(1, 60)}, {"x": nested(1, 5_000)}):
        with pytest.raises(
            TableFileError, match=r"^The rows cannot be converted to a table: this is nested deeper than 50"
        ):
            frame_from_rows([row])
    with pytest.raises(TableFileError, match=r"^rows\.json, row 1: `x\[1\]` is an object, but an integer before; "):
        frame_from_rows([{"x": [1, {"a": 2}]}, {"x": [[3]]}], "rows.json")
