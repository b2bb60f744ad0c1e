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

from pluralbench.reports.tables import Table
from pluralbench.results.numbers import Number

WIDTH = 80  # columns of a terminal
LEAST = 16  # columns that row names keep at least
MOST = 40  # columns of row names at most, in a table that is split
WORDS = (24, 12)  # columns of a word of a heading at most, in a table that does not fit with whole words
TALLEST = 8  # lines of a heading at most
CUT = "…"
BREAK = re.compile(r"(?<=[-_/ :])")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


class Label(NamedTuple):
    """Name of a row or a column.

    Attributes:
        quiet: It is a baseline and is shown dimmed.
        group: Group of rows that it belongs to.
    """

    text: str
    quiet: bool = False
    group: str = ""


class Grid(NamedTuple):
    """The texts of a table: row names, headings, and cells row by row."""

    names: Sequence[Label]
    heads: Sequence[Label]
    cells: Sequence[Sequence[Number]]


class Widths(NamedTuple):
    """Widths of the row names, the columns and the gap between columns."""

    names: int
    columns: Sequence[int]
    gap: int


def lay_out(table: Table, width: int | None = WIDTH) -> Iterator[RenderableType]:
    """Lay out a table for a terminal.

    If the columns do not fit, names and then headings are shortened in the middle, and stay unique. If they still do
    not fit, the table is split into several with the same rows, one below the other.

    Args:
        width: Columns of the terminal; None for as many as needed.
    """
    if title := clean(table.title):
        yield wrapped(Text(title, style="bold"), width)
    grid = Grid(
        [Label("  " * bool(row.group) + clean(row.name), row.quiet, clean(row.group)) for row in table.rows],
        [Label(clean(column.text)) for column in table.columns],
        table.cells(),
    )
    if width is None:
        yield _rich_table(grid, Widths(_widest(grid.names), _column_widths(grid, 1), 2))
        return
    for shown in (grid, *(_with_short_heads(grid, word) for word in WORDS)):
        if fitting := _fitting_widths(shown, width):
            yield _rich_table(shown, fitting)
            return
    for piece, widths in _pieces(_with_short_heads(grid, WORDS[0]), width):
        yield _rich_table(piece, widths)


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
    """Shorten names to at most `width` columns, by a cut in the middle that keeps them unique.

    If no such cut exists, each name starts with its number.
    """
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
    return _cut_text(text, head) + CUT + _cut_text(text, width - head - 1, end=True)


def _cut_text(text: str, width: int, *, end: bool = False) -> str:
    """The first or, with `end`, the last columns of a text; a wide character is not split."""
    spans, _ = split_graphemes(text)
    count, used = 0, 0
    for _, _, size in reversed(spans) if end else spans:
        if used + size > width:
            break
        count, used = count + 1, used + size
    if not count:
        return ""
    return text[spans[-count][0] :] if end else text[: spans[count - 1][1]]


def _fitting_widths(grid: Grid, width: int) -> Widths | None:
    """Widths at which a grid fits: full names and short headings if possible, else short names and tall headings."""
    full = _widest(grid.names)
    short = min(full, max([LEAST, *(cell_len(name.group) for name in grid.names)]))
    for names, gap, lines in [*product([full], [2, 1], range(1, TALLEST)), *product([short], [2, 1], [TALLEST])]:
        columns = _column_widths(grid, lines)
        room = width - sum(columns) - gap * len(columns)
        if room >= names:
            return Widths(min(room, full), columns, gap)
    return None


def _pieces(grid: Grid, width: int) -> Iterator[tuple[Grid, Widths]]:
    """A grid split into several, each with as many columns as fit beside the row names."""
    columns = _column_widths(grid, TALLEST)
    names = min(_widest(grid.names), max(LEAST, min(MOST, width - 2 - max(columns))))
    pieces: list[list[int]] = []
    room = 0
    for index, column_width in enumerate(columns):
        if room < column_width + 2:
            pieces.append([])
            room = width - names
        pieces[-1].append(index)
        room -= column_width + 2
    for indices in pieces:
        cells = [[row[index] for index in indices] for row in grid.cells]
        widths = Widths(names, [columns[index] for index in indices], 2)
        yield Grid(grid.names, [grid.heads[index] for index in indices], cells), widths


def _with_short_heads(grid: Grid, word: int) -> Grid:
    """A grid whose headings have no word of more than `word` columns."""
    short = shortened([head.text for head in grid.heads], word)
    heads = [
        head._replace(text=cut) if max(map(cell_len, BREAK.split(head.text))) > word else head
        for head, cut in zip(grid.heads, short, strict=True)
    ]
    return grid._replace(heads=heads)


def _widest(names: Sequence[Label]) -> int:
    return max(1, *(cell_len(text) for name in names for text in (name.text, name.group)))


def _column_widths(grid: Grid, lines: int) -> list[int]:
    """The width of each column if its heading has at most `lines` lines, or more if one word is longer."""
    column_widths = []
    for index, head in enumerate(grid.heads):
        words = max(cell_len(piece.rstrip()) for piece in BREAK.split(head.text))
        widths = range(words, cell_len(head.text) + 1)
        fits = (width for width in widths if broken(head.text, width).count("\n") < lines)
        column_widths.append(max([next(fits, words), *map(cell_len, _align([row[index] for row in grid.cells]))]))
    return column_widths


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


def _rich_table(grid: Grid, widths: Widths) -> RichTable:
    total = widths.names + sum(widths.columns) + widths.gap * len(widths.columns)
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, width=total, header_style="bold")
    table.add_column(width=widths.names, no_wrap=True)
    columns = []
    for index, (head, width) in enumerate(zip(grid.heads, widths.columns, strict=True)):
        # This box already puts one space between columns.
        own, style = width + widths.gap - 1, Style(dim=head.quiet)
        heading = Text(broken(head.text, width), justify="right", style=style)
        table.add_column(heading, width=own, no_wrap=True, vertical="bottom", style=style)
        # Justified here, since the table would strip the spaces that line up the points.
        columns.append([text.rjust(own) for text in _align([row[index] for row in grid.cells])])
    names = shortened([name.text for name in grid.names], widths.names)
    group = ""
    for name, label, row in zip(names, grid.names, zip(*columns, strict=True), strict=True):
        if label.group != group:
            group = label.group
            table.add_row(Text(shortened([group], widths.names)[0]), style="italic")
        table.add_row(Text(_isolated(name)), *map(Text, row), style=Style(dim=label.quiet))
    return table


def _isolated(name: str) -> str:
    """Isolate a right-to-left name, so that the numbers beside it keep their direction."""
    return f"\u2068{name}\u2069" if RIGHT_TO_LEFT.search(name) else name
