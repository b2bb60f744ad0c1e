"""CSV and TSV by the separator and the quoting that the caller names, read strictly.

Python's `csv` does the parsing, in its strict mode: it is C, and says where a quotation mark belongs to no cell.
Nothing guesses how a file quotes: a wrong guess drops backslashes and quotation marks in silence.
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
PIECE = 1_000_000  # characters of a text that are made lines at once
QUOTED_CELL = re.compile(r'(?:^|\t)"', re.MULTILINE)
BACKSLASH_BEFORE_OTHERS = re.compile(r'\\(?!")')
FORMATS: dict[Quoting, dict[str, Any]] = {
    "doubled": {},
    "backslash": {"escapechar": "\\"},
    "none": {"quoting": csv.QUOTE_NONE, "quotechar": None},
}
MEND = "give the table as JSON lines or Parquet"
NAME_QUOTING = f"name the file's `quoting` ({', '.join(FORMATS)}), or {MEND}"


class CsvError(Exception):
    """Where and why a file cannot be read, and whether another `quoting` may read it."""

    def __init__(self, line: int, cause: str, *, of_quoting: bool = False) -> None:
        super().__init__(cause)
        self.line = line
        self.of_quoting = of_quoting


def read_csv(path: Path, error: type[UserError] = TableFileError, dialect: Dialect = SPREADSHEET) -> pl.DataFrame:
    """The cells of a CSV file as strings, null where nothing stands in a cell; columns named by the first row.

    A column with neither a name nor a cell that is not empty is left out. Raises `error`, with the line, for rows that
    have more or fewer cells than the header, for a quotation mark that belongs to no cell, and for a header that
    several separators divide; see also `read_text`.
    """
    text = read_text(path, error)
    separator, quoting = dialect.separator, dialect.quoting or "doubled"
    if quoting == "backslash":
        text = BACKSLASH_BEFORE_OTHERS.sub(r"\\\\", text)
    tabbed = path.name.removesuffix(".gz").endswith(".tsv")
    if tabbed and dialect.quoting is None and (mark := QUOTED_CELL.search(text)):
        place = f"{path}, line {text.count(chr(10), 0, mark.end()) + 1:,}"
        raise error(f"{place}: a cell begins with a quotation mark, which may be a letter of the text; {NAME_QUOTING}.")
    before = csv.field_size_limit(TEXT_CHARACTERS)
    try:
        if separator is None:
            separator = "tab" if tabbed else _separator(text, quoting)
        rows, lines = _read(text, separator, quoting)
    except CsvError as fault:
        hint = f"; {NAME_QUOTING}" if fault.of_quoting else ""
        raise error(f"{path}, line {fault.line:,}: {fault}{hint}.") from None
    finally:
        csv.field_size_limit(before)
    return _frame(rows, lines, _nulls(rows, text, separator, quoting), path, error)


def _separator(text: str, quoting: Quoting) -> Separator:
    """The only one that the header has, or else a comma. Raises `CsvError` for several."""
    found: list[Separator] = []
    for separator in get_args(Separator):
        try:
            header = next(_records(text, separator, quoting), (1, []))[1]
        except CsvError:
            continue
        if len(header) > 1:
            found.append(separator)
    if len(found) > 1:
        raise CsvError(1, f"the header can be divided at each {' and at each '.join(found)}; name the `separator`")
    return found[0] if found else "comma"


def _read(text: str, separator: Separator, quoting: Quoting) -> tuple[list[list[str]], list[int]]:
    """The cells of each row, the header first, and the line at which each row begins."""
    rows: list[list[str]] = []
    lines: list[int] = []
    cells = 0
    for line, row in _records(text, separator, quoting):
        if rows and len(row) != len(rows[0]):
            raise CsvError(
                line,
                f"{len(row):,} cells between {separator}s, where the header has {len(rows[0]):,}; mend the row",
            )
        cells += len(row)
        if len(row) > COLUMNS or cells > CELLS:
            most = f"{COLUMNS:,} columns" if len(row) > COLUMNS else f"{CELLS:,} cells"
            raise CsvError(line, f"more than {most}, which are as many as are read")
        rows.append(row)
        lines.append(line)
    return rows, lines


def _records(text: str, separator: Separator, quoting: Quoting) -> Iterator[tuple[int, list[str]]]:
    """The line at which each row begins, and its cells; blank lines are left out."""
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=SEPARATORS[separator], strict=True, **FORMATS[quoting])
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            reason = str(fault)
            if "field limit" in reason:
                raise CsvError(start, _long_cell(text, start, separator, quoting)) from None
            raise CsvError(start, _error_cause(reason, separator), of_quoting=True) from None
        lines.check_end()
        if row:
            yield start, row


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, whichever way they end."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + PIECE) + 1 or len(text)
        if end - begin > 2 * PIECE:  # a long line, of which StringIO would have four bytes for each character
            yield from (found[0] for found in LINE.finditer(text, begin, end))
        else:
            yield from io.StringIO(text[begin:end], newline="")
        begin = end


class _Lines:
    """The lines of a text; remembers how rows ended."""

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
                f"{len(self._last):,} characters in a line, and at most {LINE_CHARACTERS:,} are read; {MEND}",
            )
        return self._last

    def check_end(self) -> None:
        """Raise `CsvError` where a row ends in another way than those before: its last cell could be longer."""
        end = self._last[len(self._last.rstrip("\r\n")) :]
        if end and end not in self._ends:
            self._ends.append(end)
        if len(self._ends) > 1:
            one, other = (ENDS[end] for end in self._ends)
            raise CsvError(self._number, f"this line ends with {other}, those before with {one}; end all alike")


def _error_cause(reason: str, separator: Separator) -> str:
    """What `csv` reports, for a reader."""
    if "unexpected end of data" in reason:
        return "a quotation mark opens a cell here and none closes it"
    if "expected after" in reason:
        return (
            f"after the closing quotation mark of a cell the text goes on, without a {separator}; "
            "double the quotation marks that belong to the text"
        )
    return reason


def _long_cell(text: str, line: int, separator: Separator, quoting: Quoting) -> str:
    """What is wrong with the row that begins at a line and has a cell of too many characters."""
    begin = sum(map(len, islice(_lines(text), line - 1)))
    part = text[begin : begin + 2 * TEXT_CHARACTERS]
    csv.field_size_limit(len(part))
    way = {"delimiter": SEPARATORS[separator], **FORMATS[quoting]}
    rows = [csv.reader(_lines(some), **way) for some in (text[:begin], part)]
    header, row = (next(filter(None, some), []) for some in rows)
    place = next((place for place, cell in enumerate(row) if len(cell) > TEXT_CHARACTERS), len(header))
    called = f"`{header[place]}`" if place < len(header) else "a cell"
    return f"{called} has a text of {length_error()}, or close its quotation mark"


def _nulls(
    rows: Sequence[Sequence[str]], text: str, separator: Separator, quoting: Quoting
) -> Sequence[Sequence[str | None]]:
    """The cells with null for the empty ones; but where polars reads the same cells, "" for those in quotation marks.

    `csv` does not tell the two apart before Python 3.12.
    """
    nulls = [[cell or None for cell in row] for row in rows]
    if '""' not in text or quoting != "doubled":
        return nulls
    try:
        again = pl.read_csv(text.encode(), has_header=False, infer_schema=False, separator=SEPARATORS[separator]).rows()
    except PolarsError:
        return nulls
    same = len(again) == len(nulls) and all(
        [cell or None for cell in row] == known for row, known in zip(again, nulls, strict=True)
    )
    return again if same else nulls


def _frame(
    rows: Sequence[Sequence[str]],
    lines: Sequence[int],
    cells_of: Sequence[Sequence[str | None]],
    path: Path,
    error: type[UserError],
) -> pl.DataFrame:
    if not rows:
        raise error(f"{path} is empty; a table begins with the names of its columns.")
    columns = dict[str, list[str | None]]()
    for place, name in enumerate(rows[0]):
        cells = [row[place] for row in cells_of[1:]]
        if not name and place and not any(cells):
            continue
        if name in columns:
            told = f"is called `{name}`, as one before it" if name else "has no name, as one before it"
            raise error(f"{path}, line {lines[0]:,}: column {place + 1:,} {told}; name every column once.")
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
