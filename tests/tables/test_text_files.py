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
        (
            b'{"input": "hello"}\n\n' + '{"input": "你好，世界"}\n'.encode("gbk"),
            ", line 3: this is not UTF-8, but perhaps ",
        ),
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
        ('{\n  "a": 1\n}\n', "prompts.jsonl, line 1: an object goes over several lines; write each on one line."),
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


WORDS = {
    "cp1252": ["Später", "El niño", "GRÖSSE", "“Hello” — it’s", "¡Éxito!", "naïve", "ÉCOLE", "œuvre", "Ærø", "«oui»"],
    "cp1251": ["Привет", "мир", "ПРИВЕТ", "как дела", "ЩЁЛК"],
    "cp1253": ["Καλημέρα", "ΚΑΛΗΜΕΡΑ", "κόσμε"],
    "cp949": ["안녕하세요", "세계", "여러분", "감사합니다"],
    "cp932": ["こんにちは", "世界", "お元気ですか", "カタカナ"],
    "big5": ["今天的天氣怎麼樣", "你好", "我們去公園吧", "謝謝"],
    "gb18030": ["你好", "今天天气怎么样", "我们去公园吧", "“谢谢”", "大模型", "（一）", "为什么？"],
}


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = file(tmp_path, b"before\n")
    with pytest.raises(TypeError):
        write_jsonl([{"a": 1}, {"a": object()}], path)
    assert path.read_bytes() == b"before\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("encoding", WORDS)
def test_another_encoding_is_shown_as_it_reads(tmp_path: Path, encoding: str) -> None:
    said = refused(file(tmp_path, " ".join(WORDS[encoding]).encode(encoding)))
    assert f"{encoding} (`{WORDS[encoding][0].split()[-1][:6]}" in said
    assert (
        "`iconv -f ENCODING " in said or f"`iconv -f {encoding} -t UTF-8 prompts.jsonl > prompts-utf8.jsonl`." in said
    )
