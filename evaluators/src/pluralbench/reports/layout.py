"""Lay out tables for a terminal: names are shortened and headings wrapped, but cells are never cut."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from pluralbench_runs.console import clean
from rich import box
from rich.cells import cell_len, split_graphemes
from rich.console import Console, RenderableType
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from pluralbench.reports.tables import Row, Table
from pluralbench.results.numbers import Number

WIDTH = 80  # columns of a terminal
LEAST = 16  # columns that row names keep at least
MOST = 40  # columns of row names at most, in a table that is split
WORD = 24  # columns of a word of a heading at most, in a table that does not fit with whole words
TALLEST = 8  # lines of a heading at most
CUT = "…"
BREAK = re.compile(r"(?<=[-_/ :])")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


class Grid(NamedTuple):
    """The texts of a table: rows with their cleaned names and groups, and a heading and the cells of each column."""

    rows: Sequence[Row]
    columns: Sequence[tuple[str, Sequence[str]]]

    @property
    def names(self) -> int:
        """The width of the widest name or group."""
        return max(1, *(cell_len(text) for row in self.rows for text in (row.name, row.group)))

    def widths(self, lines: int) -> list[int]:
        """Return the widths of the columns if headings have at most `lines` lines, or more if one word is longer."""
        widths = []
        for head, cells in self.columns:
            word = max(cell_len(piece.rstrip()) for piece in BREAK.split(head))
            fits = (width for width in range(word, cell_len(head) + 1) if broken(head, width).count("\n") < lines)
            widths.append(max([next(fits, word), *map(cell_len, cells)]))
        return widths


def lay_out(table: Table, width: int | None = WIDTH) -> Iterator[RenderableType]:
    """Lay out a table for a terminal of `width` columns; None for as many as needed.

    If the columns do not fit, names and then headings are shortened in the middle, and stay unique. If they still do
    not fit, the table is split into several with the same rows, one below the other.
    """
    if title := clean(table.title):
        yield wrapped(Text(title, style="bold"), width)
    rows = [row._replace(name="  " * bool(row.group) + clean(row.name), group=clean(row.group)) for row in table.rows]
    heads = [clean(column.text) for column in table.columns]
    cells = [_align(column) for column in zip(*table.cells(), strict=True)] or [[] for _ in heads]
    grid = Grid(rows, list(zip(heads, cells, strict=True)))
    if width is None:
        yield _rich_table(grid, grid.names, grid.widths(1), 2)
        return
    short = [
        cut if max(map(cell_len, BREAK.split(head))) > WORD else head
        for head, cut in zip(heads, shortened(heads, WORD), strict=True)
    ]
    for shown in (grid, grid._replace(columns=list(zip(short, cells, strict=True)))):
        least = min(shown.names, max([LEAST, *(cell_len(row.group) for row in rows)]))
        sizes = [*product([shown.names], [2, 1], range(1, TALLEST)), *product([least], [2, 1], [TALLEST])]
        for names, gap, lines in sizes:
            room = width - sum(shown.widths(lines)) - gap * len(heads)
            if room >= names:
                yield _rich_table(shown, min(room, shown.names), shown.widths(lines), gap)
                return
    yield from _split(shown, width)


def _split(grid: Grid, width: int) -> Iterator[RichTable]:
    """A grid as several tables, each with as many columns as fit beside the row names."""
    widths = grid.widths(TALLEST)
    names = min(grid.names, max(LEAST, min(MOST, width - 2 - max(widths))))
    pieces: list[list[int]] = []
    room = 0
    for index, column_width in enumerate(widths):
        if room < column_width + 2:
            pieces.append([])
            room = width - names
        pieces[-1].append(index)
        room -= column_width + 2
    for piece in pieces:
        own = grid._replace(columns=[grid.columns[index] for index in piece])
        yield _rich_table(own, names, [widths[index] for index in piece], 2)


def wrapped(text: Text | str, width: int | None) -> Text:
    """Wrap a text to lines of `width` columns, since consoles that print paths do not wrap."""
    text = Text(text) if isinstance(text, str) else text
    return text if width is None else Text("\n").join(text.wrap(Console(), width))


def broken(text: str, width: int) -> str:
    """Break a text into lines of at most `width` columns, after a hyphen, underscore, colon, slash or space."""
    lines = [""]
    for part in BREAK.split(text):
        if lines[-1] and cell_len(lines[-1]) + cell_len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def first_words(names: Sequence[str]) -> list[str]:
    """Return the first word of each name, as "Art" of "Art_and_Entertainment"; full names if two words are equal."""
    words = [name.split("_")[0] for name in names]
    return words if len(set(words)) == len(words) else list(names)


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Shorten names by a cut in the middle that keeps them unique; if there is none, each starts with its number."""
    if max(map(cell_len, names), default=0) <= width:
        return list(names)
    for head in sorted(range(1, width - 1), key=lambda head: abs(head - width // 2)):
        cut = [_cut(name, head, width) for name in names]
        if len(set(cut)) == len(set(names)):
            return cut
    numbered = {name: f"{place}: " for place, name in enumerate(dict.fromkeys(names), 1)}
    rest = {name: width - len(number) for name, number in numbered.items()}
    return [numbered[name] + _cut(name, rest[name] // 2, rest[name]) for name in names]


def _cut(text: str, head: int, width: int) -> str:
    """A text of at most `width` columns that keeps its first `head` columns."""
    if cell_len(text) <= width:
        return text
    letters = [text[start:end] for start, end, _ in split_graphemes(text)[0]]
    first, last = (_fitting(part, size) for part, size in ((letters, head), (letters[::-1], width - head - 1)))
    return "".join([*first, CUT, *last[::-1]])


def _fitting(letters: Sequence[str], width: int) -> list[str]:
    """The first letters that fit into `width` columns; a wide one is not split."""
    fitting: list[str] = []
    for letter in letters:
        width -= cell_len(letter)
        if width < 0:
            break
        fitting.append(letter)
    return fitting


def _align(numbers: Sequence[Number]) -> list[str]:
    """The numbers of a column, padded so that points and brackets line up."""
    bounded = [one for one in numbers if one.low]
    widest = [max((cell_len(one[side]) for one in bounded), default=0) for side in range(len(Number._fields))]
    after = sum(widest[1:]) + len(" [, ]") if bounded else 0
    texts = []
    for value, low, high, mark in numbers:
        interval = f" [{low:>{widest[1]}}, {high:>{widest[2]}}]{mark}" if low else ""
        texts.append(f"{value:>{widest[0]}}{interval:<{after}}")
    return texts


def _rich_table(grid: Grid, names: int, widths: Sequence[int], gap: int) -> RichTable:
    total = names + sum(widths) + gap * len(widths)
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, width=total, header_style="bold")
    table.add_column(width=names, no_wrap=True)
    columns = []
    for (head, cells), width in zip(grid.columns, widths, strict=True):
        own = width + gap - 1  # this box already puts one space between columns
        table.add_column(Text(broken(head, width), justify="right"), width=own, no_wrap=True, vertical="bottom")
        # Justified here, since the table would strip the spaces that line up the points.
        columns.append([cell.rjust(own) for cell in cells])
    group = ""
    for name, row, *cells in zip(shortened([row.name for row in grid.rows], names), grid.rows, *columns, strict=True):
        if row.group != group:
            group = row.group
            table.add_row(Text(shortened([group], names)[0]), style="italic")
        isolated = f"\u2068{name}\u2069" if RIGHT_TO_LEFT.search(name) else name  # keeps the direction of the numbers
        table.add_row(Text(isolated), *map(Text, cells), style=Style(dim=row.quiet))
    return table
