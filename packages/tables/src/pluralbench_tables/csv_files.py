"""CSV of unknown dialect: read in every way that it can be meant, and refused where two ways differ.

Python's `csv` does the parsing, in its strict mode: it is C, knows both ways to write a quotation mark, and says at
which line it stands. What guesses a dialect (duckdb, pandas, polars, `csv.Sniffer`) decides by a sample of the file
and drops backslashes, or lets a stray quotation mark pass, where the guess was wrong.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polars as pl
from pluralbench_runs import UserError
from polars.exceptions import PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import CELLS, COLUMNS, LINE_CHARACTERS, TEXT_CHARACTERS, too_long
from pluralbench_tables.text_files import read_text

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
ENDS = {"\n": "a line feed", "\r": "a carriage return", "\r\n": "a carriage return and a line feed"}
LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
PIECE = 1_000_000  # characters of a text that are made lines at once
# An end of line may be escaped too, though before another alone: a path, and so a row, may end with a backslash.
PAIR_OR_BACKSLASH = re.compile(r'\\[\\",;\t|]|\\(?!\r\n)[\r\n](?=[\r\n])|(\\)')
BACKSLASH_BEFORE_OTHERS = re.compile(r'\\(?!")')
MEND = "give the table as JSON lines or Parquet"


@dataclass(frozen=True)
class Quoting:
    """A way to write quotation marks and backslashes. name: as in an error. escape: the escape character."""

    name: str
    escape: str | None

    def as_csv(self, text: str) -> str | None:
        """The text as `csv` reads it in this way; None where it cannot have been written so."""
        return text


class Escaping(Quoting):
    """Every backslash escapes what follows, as Python's `csv` writes it: so it stands before nothing else."""

    def as_csv(self, text: str) -> str | None:
        """See `Quoting`."""
        return None if any(match[1] for match in PAIR_OR_BACKSLASH.finditer(text)) else text


class Marking(Quoting):
    """A backslash escapes a quotation mark only, as R and Spark write it; any other is one of the text."""

    def as_csv(self, text: str) -> str | None:
        """See `Quoting`."""
        return BACKSLASH_BEFORE_OTHERS.sub(r"\\\\", text) if '\\"' in text else None


DOUBLED = Quoting("backslashes as letters", None)
SPREADSHEET = (DOUBLED,)
ANY = (
    DOUBLED,
    Escaping("every backslash an escape", "\\"),
    Marking("only a backslash before a quotation mark an escape", "\\"),
)


@dataclass(frozen=True)
class Reading:
    """A way to read a file: the cells of each row, the header first, and the line at which each row begins."""

    quoting: Quoting
    separator: str
    rows: list[list[str]]
    lines: list[int]


class Unreadable(Exception):
    """Where and why a file cannot be read in one way."""

    def __init__(self, line: int, cause: str) -> None:
        super().__init__(cause)
        self.line = line


def read_csv(path: Path, error: type[UserError] = TableFileError, *, quotings: Sequence[Quoting] = ANY) -> pl.DataFrame:
    """The cells of a CSV file as strings, null where nothing stands in a cell; columns named by the first row.

    The cells stand between commas, semicolons, tabs or vertical bars, whichever the header has. A quotation mark in a
    quoted cell is doubled, as spreadsheets write it, or has a backslash before it. The file is read in all `quotings`
    (`SPREADSHEET`: doubled only). A column with neither a name nor a cell that is not empty is left out.

    Raises `error`, with the line, for rows that have more or fewer cells than the header, for a quotation mark that
    belongs to no cell, and where two ways to read the file give different cells; see also `read_text`.
    """
    text = read_text(path, error)
    found: list[Reading] = []
    faults: list[Unreadable] = []
    before = csv.field_size_limit(TEXT_CHARACTERS)
    try:
        for quoting, prepared, separator in _ways(text, quotings):
            try:
                reading = _read(prepared, separator, quoting)
            except Unreadable as fault:
                faults.append(fault)
                continue
            if all(reading.rows != other.rows for other in found):
                found.append(reading)
    finally:
        csv.field_size_limit(before)
    if not found:
        farthest = max(faults, key=lambda fault: fault.line)
        raise error(f"{path}, line {farthest.line:,}: {farthest}.")
    if len(found) > 1:
        raise error(_differing(path, *found[:2]))
    return _frame(found[0], _nulls(found[0], text), path, error)


def _ways(text: str, quotings: Sequence[Quoting]) -> Iterator[tuple[Quoting, str, str]]:
    """The ways to read a text: the quoting, the text as `csv` reads it so, and the separator."""
    for quoting in quotings if "\\" in text else SPREADSHEET:
        prepared = quoting.as_csv(text)
        if prepared is not None:
            yield from ((quoting, prepared, separator) for separator in _separators(prepared, quoting))


def _separators(text: str, quoting: Quoting) -> list[str]:
    """Those that the header has, or else a comma."""
    found = []
    for separator in SEPARATORS:
        try:
            header = next(_records(text, separator, quoting), (1, []))[1]
        except Unreadable:
            continue
        if len(header) > 1:
            found.append(separator)
    return found or [","]


def _read(text: str, separator: str, quoting: Quoting) -> Reading:
    rows: list[list[str]] = []
    lines: list[int] = []
    cells = 0
    for line, row in _records(text, separator, quoting):
        if rows and len(row) != len(rows[0]):
            between = SEPARATORS[separator]
            raise Unreadable(
                line, f"{len(row):,} cells between {between}, where the header has {len(rows[0]):,}; mend the row"
            )
        cells += len(row)
        if len(row) > COLUMNS or cells > CELLS:
            most = f"{COLUMNS:,} columns" if len(row) > COLUMNS else f"{CELLS:,} cells"
            raise Unreadable(line, f"more than {most}, which are as many as are read")
        rows.append(row)
        lines.append(line)
    return Reading(quoting, separator, rows, lines)


def _records(text: str, separator: str, quoting: Quoting) -> Iterator[tuple[int, list[str]]]:
    """The line at which each row begins, and its cells; blank lines are left out."""
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=separator, escapechar=quoting.escape, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            said = str(fault)
            cause = _long_cell(text, start, separator, quoting) if "field limit" in said else _cause(said, separator)
            raise Unreadable(start, cause) from None
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
            raise Unreadable(
                self._number,
                f"{len(self._last):,} characters in a line, and at most {LINE_CHARACTERS:,} are read; {MEND}",
            )
        return self._last

    def check_end(self) -> None:
        """Raise `Unreadable` where a row ends in another way than those before: its last cell could be longer."""
        end = self._last[len(self._last.rstrip("\r\n")) :]
        if end and end not in self._ends:
            self._ends.append(end)
        if len(self._ends) > 1:
            one, other = (ENDS[end] for end in self._ends)
            raise Unreadable(self._number, f"this line ends with {other}, those before with {one}; end all alike")


def _cause(said: str, separator: str) -> str:
    """What `csv` says, for a reader."""
    if "unexpected end of data" in said:
        return "a quotation mark opens a cell here and none closes it"
    if "expected after" in said:
        return (
            f"after the closing quotation mark of a cell the text goes on, without one of the {SEPARATORS[separator]}; "
            "double the quotation marks that belong to the text"
        )
    return said


def _long_cell(text: str, line: int, separator: str, quoting: Quoting) -> str:
    """What is wrong with the row that begins at a line and has a cell of too many characters."""
    begin = sum(map(len, islice(_lines(text), line - 1)))
    part = text[begin : begin + 2 * TEXT_CHARACTERS]
    csv.field_size_limit(len(part))
    rows = [csv.reader(_lines(some), delimiter=separator, escapechar=quoting.escape) for some in (text[:begin], part)]
    header, row = (next(filter(None, some), []) for some in rows)
    place = next((place for place, cell in enumerate(row) if len(cell) > TEXT_CHARACTERS), len(header))
    called = f"`{header[place]}`" if place < len(header) else "a cell"
    return f"{called} has a text of {too_long()}, or close its quotation mark"


def _differing(path: Path, one: Reading, other: Reading) -> str:
    rows = zip(one.rows, other.rows, strict=False)
    place = next((place for place, (a, b) in enumerate(rows) if a != b), min(len(one.rows), len(other.rows)) - 1)
    return (
        f"{path}, line {one.lines[place]:,}: this can be read in two ways that differ: {_said(one)}; or "
        f"{_said(other)}; {MEND}."
    )


def _said(reading: Reading) -> str:
    return f"as cells between {SEPARATORS[reading.separator]}, with {reading.quoting.name}"


def _nulls(reading: Reading, text: str) -> Sequence[Sequence[str | None]]:
    """The cells with null for the empty ones; but where polars reads the same cells, "" for those in quotation marks.

    `csv` does not tell the two apart before Python 3.12.
    """
    nulls = [[cell or None for cell in row] for row in reading.rows]
    if '""' not in text or reading.quoting is not DOUBLED:
        return nulls
    try:
        again = pl.read_csv(text.encode(), has_header=False, infer_schema=False, separator=reading.separator).rows()
    except PolarsError:
        return nulls
    same = len(again) == len(nulls) and all(
        [cell or None for cell in row] == known for row, known in zip(again, nulls, strict=True)
    )
    return again if same else nulls


def _frame(
    reading: Reading, cells_of: Sequence[Sequence[str | None]], path: Path, error: type[UserError]
) -> pl.DataFrame:
    if not reading.rows:
        raise error(f"{path} is empty; a table begins with the names of its columns.")
    columns = dict[str, list[str | None]]()
    for place, name in enumerate(reading.rows[0]):
        cells = [row[place] for row in cells_of[1:]]
        if not name and place and not any(cells):
            continue
        if name in columns:
            told = f"is called `{name}`, as one before it" if name else "has no name, as one before it"
            raise error(f"{path}, line {reading.lines[0]:,}: column {place + 1:,} {told}; name every column once.")
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
