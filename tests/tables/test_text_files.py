"""Text files as people hand them in, and what is said of those that are not UTF-8 or not JSON."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_runs import UserError
from pluralbench_tables import TableFileError, read_jsonl, read_text, write_jsonl

TEXT = '{"input": "你好"}\n{"input": "再见，明天见。"}\n'

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r\x0b\x0c\x1c\x85\u2028\u2029")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab你", max_size=2), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text("ab你", max_size=2), JSON, max_size=3), min_size=1, max_size=5)


def file(folder: Path, data: bytes, name: str = "prompts.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refused(path: Path, error: type[UserError] = TableFileError) -> str:
    """What is said about the file, without the folder it is in."""
    with pytest.raises(error) as caught:
        read_jsonl(path, error)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf_8_with_or_without_a_mark(tmp_path: Path, encoding: str) -> None:
    path = file(tmp_path, TEXT.encode(encoding))
    assert read_text(path) == TEXT
    assert read_jsonl(path) == [{"input": "你好"}, {"input": "再见，明天见。"}]


@pytest.mark.smoke
def test_blank_lines_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    path = file(tmp_path, b'\n \t\r\n{"a": 1}\r\n\r\n{"a": 2}')
    assert read_jsonl(path) == [{"a": 1}, {"a": 2}]


@given(OBJECTS)
@settings(max_examples=40)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write_jsonl(rows, path)
    assert read_jsonl(path) == rows
    assert [entry.name for entry in path.parent.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "gb2312"])
def test_gbk_is_told_with_the_command_that_converts_it(tmp_path: Path, encoding: str) -> None:
    path = file(tmp_path, TEXT.encode(encoding))
    assert refused(path) == (
        "prompts.jsonl, line 1: this is GBK and not UTF-8; convert it with "
        "`iconv -f GB18030 -t UTF-8 prompts.jsonl > prompts-utf8.jsonl`."
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_told_with_the_command_that_converts_it(tmp_path: Path, encoding: str) -> None:
    path = file(tmp_path, ("\ufeff" * (encoding != "utf-16") + TEXT).encode(encoding))
    assert refused(path) == (
        "prompts.jsonl is UTF-16 and not UTF-8; convert it with "
        "`iconv -f UTF-16 -t UTF-8 prompts.jsonl > prompts-utf8.jsonl`."
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"input": "hello"}\n\n' + '{"input": "你好，世界"}\n'.encode("gbk"), ", line 3: this is GBK and not UTF-8;"),
        (b'{"a": 1}\n{"a": "\x98\x81\xff"}\n', ", line 2: this is not UTF-8; save the file as UTF-8."),
        ('{"input": "你'.encode()[:-1], " is truncated: it ends in the middle of a character; get it again."),
    ],
)
def test_the_first_line_that_is_not_utf_8_is_named(tmp_path: Path, data: bytes, sentence: str) -> None:
    assert refused(file(tmp_path, data)).startswith(f"prompts.jsonl{sentence}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "prompts.jsonl has no rows."),
        ("\n \n", "prompts.jsonl has no rows."),
        ('{"a": 1}\n\n{"a": 1,}\n', "prompts.jsonl, line 3: this is not JSON ("),
        ("[1, 2]\n", "prompts.jsonl, line 1: this is not a JSON object."),
        ('{"a": 1}\n"你好"\n', "prompts.jsonl, line 2: this is not a JSON object."),
        ('{"a": 1} {"a": 2}\n', "prompts.jsonl, line 1: this is not JSON (Extra data"),
        ("[" * 100_000, "prompts.jsonl, line 1: this is nested deeper than 50 levels"),
    ],
)
def test_what_is_no_json_names_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    assert refused(file(tmp_path, text.encode())).startswith(sentence)


class AnotherError(UserError):
    """What a caller raises."""


def test_the_error_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    for data in (b"", b"x", "你".encode("gbk"), "你".encode("utf-16")):
        assert refused(file(tmp_path, data), AnotherError)
    assert refused(tmp_path / "none", AnotherError)
