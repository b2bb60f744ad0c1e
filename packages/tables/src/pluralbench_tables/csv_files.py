"""Strict reader of CSV and TSV.

Python's `csv` parses the file in strict mode: it is fast, and reports a quotation mark outside of a cell. Quoting is
never guessed, because a wrong guess silently drops backslashes and quotation marks.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import polars as pl
from pluralbench_runs import UserError
from polars.exceptions import PolarsError

from pluralbench_tables.dialect import SPREADSHEET, Dialect, Quoting, Separator
from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, TEXT_CHARACTERS
from pluralbench_tables.text_files import read_text

SEPARATORS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
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

    A column without a name and without values is left out. The file may be compressed by gzip.

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
    """Return the only separator in the header, or a comma if there is none."""
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
        if cells > CELLS:
            raise CsvError(line, f"more than {CELLS:,} cells, the maximum")
        rows.append(row)
        lines.append(line)
    return rows, lines


def _records(text: str, separator: Separator, quoting: Quoting) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each row begins and its cells, without blank lines."""
    lines = (match[0] for match in LINE.finditer(text))
    reader = csv.reader(lines, delimiter=SEPARATORS[separator], strict=True, **FORMATS[quoting])
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as cause:
            raise CsvError(start, _error_cause(str(cause), separator), of_quoting=True) from None
        if row:
            yield start, row


def _error_cause(reason: str, separator: Separator) -> str:
    if "field limit" in reason:
        return f"a cell has more than {TEXT_CHARACTERS:,} characters; shorten it, or close its quotation mark"
    if "unexpected end of data" in reason:
        return "a quotation mark opens a cell here, and none closes it"
    if "expected after" in reason:
        return (
            f"text follows the closing quotation mark of a cell, without a {separator}; double the quotation marks "
            "of the text"
        )
    return reason


def _nulls(
    rows: Sequence[Sequence[str]], text: str, separator: Separator, quoting: Quoting
) -> Sequence[Sequence[str | None]]:
    """Replace empty cells by null, but keep "" for those in quotation marks if polars reads the same cells."""
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
