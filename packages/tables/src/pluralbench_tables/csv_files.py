"""Strict reader of CSV and TSV.

Python's `csv` parses the file in strict mode: it is fast, and reports a quotation mark outside of a cell. Quoting is
never guessed, because a wrong guess silently drops backslashes and quotation marks.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import polars as pl
from pluralbench_runs import UserError
from polars.exceptions import PolarsError

from pluralbench_tables.dialect import SPREADSHEET, Dialect, Quoting, Separator
from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, COLUMNS, LINE_CHARACTERS, TEXT_CHARACTERS, length_error
from pluralbench_tables.text_files import read_text

SEPARATORS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
ENDS = {"\n": "a line feed", "\r": "a carriage return", "\r\n": "a carriage return and a line feed"}
LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
CHUNK_CHARACTERS = 1_000_000  # of a text that are split into lines together
QUOTED_CELL = re.compile(r'(?:^|\t)"', re.MULTILINE)
BACKSLASH_BEFORE_OTHERS = re.compile(r'\\(?!")')
FORMATS: dict[Quoting, dict[str, Any]] = {
    "doubled": {},
    "backslash": {"escapechar": "\\"},
    "none": {"quoting": csv.QUOTE_NONE, "quotechar": None},
}
CONVERT_HINT = "convert the file to JSON Lines or Parquet"
QUOTING_HINT = f"set `quoting=...` ({', '.join(FORMATS)}), or {CONVERT_HINT}"


class CsvError(Exception):
    """A file cannot be read. `of_quoting`: another `quoting` may be able to read it."""

    def __init__(self, line: int, cause: str, *, of_quoting: bool = False) -> None:
        super().__init__(cause)
        self.line = line
        self.of_quoting = of_quoting


def read_csv(path: Path, error: type[UserError] = TableFileError, dialect: Dialect = SPREADSHEET) -> pl.DataFrame:
    """Read a CSV file with a header. Cells are strings, and empty cells are null.

    A column without a name and without values is left out.

    Args:
        path: The file, possibly compressed by gzip.
        error: The type of the errors.
        dialect: Separator and quoting. Default: see `Dialect`.

    Raises:
        UserError: Of the type `error`: a row has more or fewer cells than the header, a quotation mark is outside of a
            cell, several separators are possible, or `read_text` cannot read the file. The message names the line.
    """
    text = read_text(path, error)
    separator, quoting = dialect.separator, dialect.quoting or "doubled"
    if quoting == "backslash":
        text = BACKSLASH_BEFORE_OTHERS.sub(r"\\\\", text)
    is_tsv = path.name.removesuffix(".gz").endswith(".tsv")
    if is_tsv and dialect.quoting is None and (mark := QUOTED_CELL.search(text)):
        place = f"{path}, line {text.count(chr(10), 0, mark.end()) + 1:,}"
        raise error(f"{place}: a cell begins with a quotation mark, which may be part of the text; {QUOTING_HINT}.")
    before = csv.field_size_limit(TEXT_CHARACTERS)
    try:
        if separator is None:
            separator = "tab" if is_tsv else _detect_separator(text, quoting)
        rows, lines = _read(text, separator, quoting)
    except CsvError as cause:
        hint = f"; {QUOTING_HINT}" if cause.of_quoting else ""
        raise error(f"{path}, line {cause.line:,}: {cause}{hint}.") from None
    finally:
        csv.field_size_limit(before)
    return _frame(rows, lines, _nulls(rows, text, separator, quoting), path, error)


def _detect_separator(text: str, quoting: Quoting) -> Separator:
    """Return the only separator in the header, or a comma if there is none. Raises `CsvError` for several."""
    candidates: list[Separator] = []
    for separator in get_args(Separator):
        try:
            header = next(_records(text, separator, quoting), (1, []))[1]
        except CsvError:
            continue
        if len(header) > 1:
            candidates.append(separator)
    if len(candidates) > 1:
        raise CsvError(1, f"the header can be split by {' and by '.join(candidates)}; set `separator=...`")
    return candidates[0] if candidates else "comma"


def _read(text: str, separator: Separator, quoting: Quoting) -> tuple[list[list[str]], list[int]]:
    """Return the cells of each row, beginning with the header, and the line where each row begins."""
    rows: list[list[str]] = []
    lines: list[int] = []
    cells = 0
    for line, row in _records(text, separator, quoting):
        if rows and len(row) != len(rows[0]):
            raise CsvError(
                line,
                f"{len(row):,} cells between {separator}s, but the header has {len(rows[0]):,}; fix the row",
            )
        cells += len(row)
        if len(row) > COLUMNS or cells > CELLS:
            most = f"{COLUMNS:,} columns" if len(row) > COLUMNS else f"{CELLS:,} cells"
            raise CsvError(line, f"more than {most}, the maximum")
        rows.append(row)
        lines.append(line)
    return rows, lines


def _records(text: str, separator: Separator, quoting: Quoting) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each row begins and its cells, without blank lines."""
    lines = _LineReader(text)
    reader = csv.reader(lines, delimiter=SEPARATORS[separator], strict=True, **FORMATS[quoting])
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as cause:
            reason = str(cause)
            if "field limit" in reason:
                raise CsvError(start, _long_cell(text, start, separator, quoting)) from None
            raise CsvError(start, _error_cause(reason, separator), of_quoting=True) from None
        lines.check_end()
        if row:
            yield start, row


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text with any line ending."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + CHUNK_CHARACTERS) + 1 or len(text)
        if end - begin > 2 * CHUNK_CHARACTERS:  # a long line; StringIO takes four bytes per character
            yield from (match[0] for match in LINE.finditer(text, begin, end))
        else:
            yield from io.StringIO(text[begin:end], newline="")
        begin = end


class _LineReader:
    """Iterates over the lines of a text, and checks that all rows end in the same way."""

    def __init__(self, text: str) -> None:
        self._lines = _lines(text)
        self._number = 0
        self._last = ""
        self._ends: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._last = next(self._lines)
        self._number += 1
        if len(self._last) > LINE_CHARACTERS:
            raise CsvError(
                self._number,
                f"{len(self._last):,} characters in a line; the maximum is {LINE_CHARACTERS:,}; {CONVERT_HINT}",
            )
        return self._last

    def check_end(self) -> None:
        """Raise `CsvError` if a row ends differently from earlier rows, since its last cell may be longer."""
        end = self._last[len(self._last.rstrip("\r\n")) :]
        if end and end not in self._ends:
            self._ends.append(end)
        if len(self._ends) > 1:
            one, other = (ENDS[end] for end in self._ends)
            raise CsvError(
                self._number, f"this line ends with {other}, the lines before with {one}; use one line ending"
            )


def _error_cause(reason: str, separator: Separator) -> str:
    """Explain an error of `csv`."""
    if "unexpected end of data" in reason:
        return "a quotation mark opens a cell here, and none closes it"
    if "expected after" in reason:
        return (
            f"text follows the closing quotation mark of a cell, without a {separator}; double the quotation marks "
            "of the text"
        )
    return reason


def _long_cell(text: str, line: int, separator: Separator, quoting: Quoting) -> str:
    """Explain which cell is too long in the row that begins at a line."""
    begin = sum(map(len, islice(_lines(text), line - 1)))
    part = text[begin : begin + 2 * TEXT_CHARACTERS]
    csv.field_size_limit(len(part))
    options = {"delimiter": SEPARATORS[separator], **FORMATS[quoting]}
    readers = [csv.reader(_lines(some), **options) for some in (text[:begin], part)]
    header, row = (next(filter(None, reader), []) for reader in readers)
    column = next((column for column, cell in enumerate(row) if len(cell) > TEXT_CHARACTERS), len(header))
    name = f"`{header[column]}`" if column < len(header) else "a cell"
    return f"{name} has a text of {length_error()}, or close its quotation mark"


def _nulls(
    rows: Sequence[Sequence[str]], text: str, separator: Separator, quoting: Quoting
) -> Sequence[Sequence[str | None]]:
    """Replace empty cells by null, but keep "" for those in quotation marks if polars reads the same cells.

    `csv` cannot distinguish the two before Python 3.12.
    """
    nulls = [[cell or None for cell in row] for row in rows]
    if '""' not in text or quoting != "doubled":
        return nulls
    try:
        reread = pl.read_csv(
            text.encode(), has_header=False, infer_schema=False, separator=SEPARATORS[separator]
        ).rows()
    except PolarsError:
        return nulls
    is_same = len(reread) == len(nulls) and all(
        [cell or None for cell in row] == expected for row, expected in zip(reread, nulls, strict=True)
    )
    return reread if is_same else nulls


def _frame(
    rows: Sequence[Sequence[str]],
    lines: Sequence[int],
    cells_of: Sequence[Sequence[str | None]],
    path: Path,
    error: type[UserError],
) -> pl.DataFrame:
    if not rows:
        raise error(f"{path} is empty; a table begins with the column names.")
    columns = dict[str, list[str | None]]()
    for place, name in enumerate(rows[0]):
        cells = [row[place] for row in cells_of[1:]]
        if not name and place and not any(cells):
            continue
        if name in columns:
            problem = f"is named `{name}`, like an earlier one" if name else "has no name, like an earlier one"
            raise error(f"{path}, line {lines[0]:,}: column {place + 1:,} {problem}; use unique names.")
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
