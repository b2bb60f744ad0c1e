"""Sheets: no cell is a formula, every text comes back as it was, and what somebody filled in is not lost."""

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_studies import (
    Form,
    Question,
    StudyError,
    check_unfilled,
    preference,
    read_answers,
    read_rows,
    write_sheets,
)

FORM = Form(
    {"post": "The post", "x": "One", "y": "Two"}, [preference("better", "One", "Two"), Question("why", optional=True)]
)
DANGEROUS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
texts = (
    st.text(st.sampled_from("=+-@＝＋－＠\t\r\n'\"，,;甲A1 \ufeff"), max_size=8)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
    | st.sampled_from(["漢字，「引用」", "مرحبا \u202eabc\u202c", "שלום\r\nעולם", "🍵\u2028", '=HYPERLINK("x")'])
)


def shown(*rows: tuple[str, str, str], annotator: str = "an") -> pl.DataFrame:
    named = [(f"i{number}", annotator, *row) for number, row in enumerate(rows)]
    return pl.DataFrame(named, schema=["item", "annotator", *FORM.fields], orient="row")


def fill(path: Path, **answers: str) -> None:
    read_rows(path).with_columns(pl.lit(text).alias(name) for name, text in answers.items()).write_csv(path)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=4))
@example([("\r", "\r\n", "\n\r"), ("\ufeff", '"', ","), ("", " ", "=1+1"), ("'=1+1", "''", "'")])
@settings(max_examples=20)
def test_any_text_is_shown_as_it_is(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]) -> None:
    (path,) = write_sheets(tmp_path_factory.mktemp("sheets"), shown(*rows), FORM)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")  # by which a spreadsheet knows UTF-8
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.DictReader(file))
    assert list(cells[0]) == ["item", "annotator", "post", "x", "y", "better", "why"]
    assert not [text for row in cells for text in row.values() if text.strip().startswith(DANGEROUS)]
    back = read_rows(path)
    assert sorted(back.select("item", *FORM.fields).rows()) == sorted(shown(*rows).select("item", *FORM.fields).rows())


def test_each_annotator_has_a_sheet_whose_order_says_nothing(tmp_path: Path) -> None:
    rows = [("p", "1", "2")] * 30
    paths = write_sheets(tmp_path, pl.concat([shown(*rows), shown(*rows[:9], annotator="bo")]), FORM)
    assert paths == [tmp_path / "an.csv", tmp_path / "bo.csv"]
    orders = [read_rows(path)["item"].to_list() for path in paths]
    assert [len(order) for order in orders] == [30, 9]
    assert all(order != sorted(order) for order in orders)
    assert [item for item in orders[0] if item in orders[1]] != orders[1]


def test_what_was_filled_in_is_read_and_not_written_over(tmp_path: Path) -> None:
    (path,) = write_sheets(tmp_path, shown(("p", "=1", "2")), FORM)
    check_unfilled([path], FORM.names)
    fill(path, better=" １ ", why="短い、\n「はい」")
    with pytest.raises(StudyError, match="has been filled in; choose another folder, so that nothing is lost"):
        check_unfilled([path], FORM.names)
    found = read_answers([path], FORM, shown(("p", "=1", "2"))).answers
    assert found.rows() == [("i0", "an", "better", "1"), ("i0", "an", "why", "短い、\n「はい」")]
    with pytest.raises(StudyError) as caught:
        write_sheets(tmp_path, shown(("p", "=1", "2")), FORM)
    assert str(caught.value) == f"{path} exists already; choose another folder, so that no answer is lost."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"annotator,better\nan,1\n", "{} has no column `item`; it has annotator, better."),
        (b"item:annotator:better\ni0:an:1\n", "{} has no column `item`; it has item:annotator:better."),
        (b"item,annotator,other\ni0,an,1\n", "{} has no column of answers, such as better, why."),
        ("item,annotator,why\ni0,an,这个回答很好\n".encode("gbk"), "{}, line 2: this is not UTF-8, but perhaps "),
    ],
)
def test_sheets_that_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        read_answers([path], FORM, shown(("p", "1", "2")))
    assert str(caught.value).startswith(message.format(path))
