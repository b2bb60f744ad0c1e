"""CSV and TSV by the dialect that the caller names, read back as it was written or refused with its line."""

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pluralbench_tables import SPREADSHEET, Dialect, Separator, TableFileError, read_csv
from pluralbench_tables.csv_files import SEPARATORS

# What R writes, and Kaggle holds: a backslash before the quotation marks of a text, and before nothing else.
ESSAYS = (
    b"id,essay,score\n"
    b'1,"She said \\"yes\\", and left.",3\n'
    b'2,"\\"No\\"",\n'
    b'3,"A path: C:\\dir, and a line\nend.",4\n'
)  # fmt: skip
BACKSLASH = Dialect(quoting="backslash")
PIECES = ['"', "\\", '"yes"', '\\"', "\\\\", "\\n", ",", ";", "\t", "|", "\n", "\r", "\r\n", "a", " b", "é", "'", ""]
CELL = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | st.text(st.characters(codec="utf-8"), max_size=4)
ROWS = st.lists(st.tuples(CELL, CELL, CELL), max_size=4)


def file(folder: Path, data: bytes, name: str = "sheet.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refused(folder: Path, data: bytes) -> str:
    """What is said about the file, without the folder it is in."""
    with pytest.raises(TableFileError) as caught:
        read_csv(file(folder, data))
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.smoke
def test_quotation_marks_after_backslashes_stay_in_the_text(tmp_path: Path) -> None:
    frame = read_csv(file(tmp_path, ESSAYS), dialect=BACKSLASH)
    assert frame["essay"].to_list() == ['She said "yes", and left.', '"No"', "A path: C:\\dir, and a line\nend."]
    assert frame["score"].to_list() == ["3", None, "4"]


@given(
    rows=ROWS, separator=st.sampled_from([*SEPARATORS]), end=st.sampled_from(["\n", "\r\n", "\r"]), mark=st.booleans()
)
@example(rows=[("a\rb", "", "x"), ("C:\\", '\\"', "\\\\")], separator="comma", end="\n", mark=False)
def test_what_a_spreadsheet_writes_is_always_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    separator: Separator,
    end: str,
    mark: bool,
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=SEPARATORS[separator], lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "é", "b"), *rows])
    data = text.getvalue().encode("utf-8-sig" if mark else "utf-8")
    for dialect in (SPREADSHEET, Dialect(separator)):
        frame = read_csv(file(tmp_path_factory.mktemp("csv"), data), dialect=dialect)
        assert [tuple(cell or "" for cell in row) for row in frame.iter_rows()] == rows


def test_a_header_that_several_separators_divide_wants_one_named(tmp_path: Path) -> None:
    path = file(tmp_path, b"a;b,c\n1;2,3\n")
    assert read_csv(path, dialect=Dialect("semicolon")).rows(named=True) == [{"a": "1", "b,c": "2,3"}]
    with pytest.raises(TableFileError, match=r"t\.tsv, line 2: a cell begins with a quotation mark, .* set `quoting="):
        read_csv(file(tmp_path, b'a\tb\n1\t"2"\n', "t.tsv"))
    assert read_csv(file(tmp_path, b"a,b\tc;d\n1\t2\n", "t.tsv")).columns == ["a,b", "c;d"]


def test_gzip_is_expanded_whatever_its_name(tmp_path: Path) -> None:
    for name in ("essays.csv.gz", "essays.csv"):
        assert read_csv(file(tmp_path, gzip.compress(ESSAYS), name), dialect=BACKSLASH).height == 3
    with pytest.raises(TableFileError, match=r"essays\.csv\.gz cannot be read: Compressed file ended before"):
        read_csv(file(tmp_path, gzip.compress(ESSAYS)[:-9], "essays.csv.gz"))


def test_what_expands_beyond_all_bounds_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluralbench_tables.text_files.FILE_BYTES", 10_000)
    assert refused(tmp_path, gzip.compress(b"a" * 100_000)) == (
        "sheet.csv expands to more than 10,000 bytes, the maximum; split it."
    )
    assert refused(tmp_path, b"a" * 100_000) == "sheet.csv has 100,000 bytes; the maximum is 10,000; split it."


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "sheet.csv is empty; a table begins with the column names."),
        (b"a,b\n1,2\n1,2,3\n", "sheet.csv, line 3: 3 cells between commas, but the header has 2; fix the row."),
        (b"a,b,a\n1,2,3\n", "sheet.csv, line 1: column 3 is named `a`, like an earlier one; use unique names."),
        (
            b'a,b\n"She said "yes" to me",2\n',
            "sheet.csv, line 2: text follows the closing quotation mark of a cell, without a comma; double "
            "the quotation marks of the text; set `quoting=...` (doubled, backslash, none), or "
            "convert the file to JSON Lines or Parquet.",
        ),
        (
            b'a,b\n1,2\n"open,2\n',
            "sheet.csv, line 3: a quotation mark opens a cell here, and none closes it; set `quoting=...` "
            "(doubled, backslash, none), or convert the file to JSON Lines or Parquet.",
        ),
        (
            b"a;b,c\n1;2,3\n",
            "sheet.csv, line 1: the header can be split by comma and by semicolon; set `separator=...`.",
        ),
        (b"PK\x03\x04workbook", "sheet.csv is a workbook or an archive, not a text file; save it as CSV in UTF-8."),
        (
            "a,b\n".encode("utf-16-le"),
            "sheet.csv is UTF-16 and not UTF-8; convert it with "
            "`iconv -f UTF-16LE -t UTF-8 sheet.csv > sheet-utf8.csv`.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_without_loss_names_the_line(tmp_path: Path, data: bytes, sentence: str) -> None:
    assert refused(tmp_path, data) == sentence


def test_cells_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("TEXT_CHARACTERS", 100), ("CELLS", 20_000)):
        monkeypatch.setattr(f"pluralbench_tables.csv_files.{name}", limit)
    assert refused(tmp_path, b"a,b\n" * 10_001) == ("sheet.csv, line 10,001: more than 20,000 cells, the maximum.")
    assert refused(tmp_path, b'a,b\n1,"' + b"x\n" * 51).startswith(
        "sheet.csv, line 2: a cell has more than 100 characters; shorten it, or close its quotation mark; set `quoting="
    )
    assert csv.field_size_limit() == 131_072  # as others left it


PLAIN = st.text(st.sampled_from("\"\\';,|\x00a é") | st.characters(codec="utf-8"), max_size=6)


@given(rows=st.lists(st.tuples(PLAIN, PLAIN, PLAIN), max_size=4))
@example(rows=[('"quoted"', 'a "b', "'"), ('""', "\\", "x")])
def test_what_never_quotes_has_quotation_marks_as_letters(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    kept = [tuple(re.sub(r"[\t\r\n\x00]", " ", cell) for cell in row) for row in rows]
    text = "".join("\t".join(row) + "\n" for row in [("id", "é", "b"), *kept])
    frame = read_csv(file(tmp_path_factory.mktemp("tsv"), text.encode(), "mqm.tsv"), dialect=Dialect(quoting="none"))
    assert [tuple(cell or "" for cell in row) for row in frame.iter_rows()] == kept
