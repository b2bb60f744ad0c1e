"""What tables of JSON hold is what the JSON says, or the table is refused with the place of the first odd value."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release import TablesError, read_tables

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text('ab1\n"[{é', max_size=3),
    st.sampled_from([0, 1, 2**53 + 1, 1.0, "1", "true", "null", "[]", '{"a":1}']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES, min_size=1), min_size=1, max_size=4)


def same(read: Any, given_value: Any) -> bool:
    """Whether a value of a table is that of the JSON text; integers and booleans may be texts, integers decimal."""
    if isinstance(given_value, dict):
        known = isinstance(read, dict) and given_value.keys() <= read.keys()
        return known and all(same(value, given_value.get(key)) for key, value in read.items())
    if isinstance(given_value, list):
        return isinstance(read, list) and len(read) == len(given_value) and all(map(same, read, given_value))
    if isinstance(given_value, int) and isinstance(read, str):
        return read == json.dumps(given_value)
    if type(given_value) is int and isinstance(read, float):
        return read == given_value
    return type(read) is type(given_value) and read == given_value


def as_json(cell: str | None) -> Any:
    return None if cell is None else json.loads(cell)


def has_values(frame: pl.DataFrame, rows: list[dict[str, Any]]) -> bool:
    """Whether each column has the values of the rows, or all of them as JSON."""
    return len(rows) == frame.height and all(
        all(map(same, frame[name].to_list(), values))
        or (frame[name].dtype == pl.String and all(map(same, map(as_json, frame[name]), values)))
        for name in frame.columns
        for values in [[row.get(name) for row in rows]]
    )


@given(ROWS, st.integers(0, 4), st.sampled_from(["jsonl", "json", "splits"]))
def test_json_is_read_as_it_is_or_refused(rows: list[dict[str, Any]], first: int, form: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        parts = [part for part in (rows[:first], rows[first:]) if part]
        names = ["train", "test"] if form == "splits" else ["train_0", "train_1"]
        for part, stem in zip(parts, names, strict=False):
            lines = [json.dumps(row) for row in part]
            text = f"[{','.join(lines)}]" if form == "json" else "\n".join(lines)
            (folder / f"{stem}.{'json' if form == 'json' else 'jsonl'}").write_text(text, encoding="utf-8")
        try:
            (frame,) = read_tables(str(folder), split="all" if form == "splits" else "train").frames.values()
        except TablesError:
            return
        assert has_values(frame, rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"p": [{"role": "user", "content": "a"}]}, {}, {"p": [{"role": "user", "content": [{"text": "b"}]}]}],
            "row 3: `p[0].content` is a list, but text before",
        ),
        ([{"p": [{"content": "a"}, {"content": [{"text": "b"}]}]}], "row 1: `p[1].content` is a list, but text before"),
        ([{"p": [["four"], "4"]}], "row 1: `p[1]` is text, but a list before"),
        ([{"p": True}, {"p": 2}], "row 2: `p` is an integer, but a boolean before"),
        ([{"p": "4"}, {"p": 7.5}], "row 2: `p` is a decimal number, but text before"),
        ([{"p": 2**53 + 1}, {"p": 0.5}], "row 2: `p` is a decimal number, but an integer of over 15 digits before"),
        ([{"p": {"a": [True]}}, {"p": {"a": [[]]}}], "row 2: `p.a[0]` is a list, but a boolean before"),
    ],
)
def test_values_of_several_kinds_are_refused_where_they_are(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(TablesError) as caught:
        read_tables(str(path))
    assert str(caught.value) == f"{path}, {message}; give all values there one type."
    (frame,) = read_tables(str(path), needed=lambda name: name != "p").frames.values()
    assert [as_json(cell) for cell in frame["p"]] == [row.get("p") for row in rows]


def test_the_place_of_a_value_names_its_own_file(tmp_path: Path) -> None:
    for number, value in enumerate(["text", [1]]):
        row = json.dumps({"p": [{"c": value}]})
        (tmp_path / f"test_{number}.jsonl").write_text(f'{row}\n{{"p": []}}\n', encoding="utf-8")
    with pytest.raises(TablesError, match=r"test_1\.jsonl, row 1: `p\[0\]\.c` is a list, but text before"):
        read_tables(str(tmp_path))
