"""Tables in so many columns of a terminal: names are shortened, headings broken at word ends, cells whole."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from rich import box
from rich.cells import cell_len, split_graphemes
from rich.console import Console, RenderableType
from rich.style import Style
from rich.table import Table as Drawn
from rich.text import Text

from pluralbench.reports.numbers import Number
from pluralbench.reports.tables import Table

WIDTH = 80  # columns of a terminal
LEAST = 16  # columns that names keep beside what else there is
MOST = 40  # columns of names in a table of several pieces
WORD = 24  # columns of a word in a heading of a table of several pieces
TALLEST = 8  # lines of a heading
CUT = "…"
BREAK = re.compile(r"(?<=[-/ :])")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


class Label(NamedTuple):
    """What names a row or a column. quiet: it is no result."""

    text: str
    quiet: bool = False
    group: str = ""


class Grid(NamedTuple):
    """A table that is laid out: its names, headings and cells, row by row."""

    names: Sequence[Label]
    heads: Sequence[Label]
    cells: Sequence[Sequence[Number]]


class Widths(NamedTuple):
    """How wide names and columns are, and what is between them."""

    names: int
    columns: Sequence[int]
    gap: int


def lay_out(table: Table, width: int | None = WIDTH) -> Iterator[RenderableType]:
    """A table in at most `width` columns of a terminal; without, in as many as it needs.

    Where columns do not fit, those of parts become rows; others go into several tables below each other. Names are
    shortened in the middle and stay unlike.
    """
    if title := clean(table.title):
        yield wrapped(Text(title, style="bold"), width)
    grid = Grid(
        [Label("  " * bool(row.group) + clean(row.name), row.quiet, clean(row.group)) for row in table.rows],
        [Label(clean(column.text)) for column in table.columns],
        table.cells(),
    )
    if width is None:
        yield _drawn(grid, Widths(_widest(grid.names), _columns(grid, 1), 2))
        return
    found = _fitting(grid, width)
    if found is None and any(column.part for column in table.columns):
        grid = Grid(grid.heads, grid.names, list(zip(*grid.cells, strict=True)))
        found = _fitting(grid, width)
    for piece, widths in _pieces(grid, width) if found is None else [(grid, found)]:
        yield _drawn(piece, widths)


def wrapped(text: Text | str, width: int | None) -> Text:
    """A text on lines of so many columns, broken here since consoles that print paths do not."""
    text = Text(text) if isinstance(text, str) else text
    return text if width is None else Text("\n").join(text.wrap(Console(), width))


def clean(text: str) -> str:
    """A text on one line, without what moves a cursor or turns the direction of what stands beside it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def broken(text: str, width: int) -> str:
    """A text on lines of at most so many columns, broken after a hyphen, colon, slash or space."""
    lines = [""]
    for part in BREAK.split(text):
        if lines[-1] and cell_len(lines[-1]) + cell_len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def first_words(names: Sequence[str]) -> list[str]:
    """The first word of each name, as "Art" of "Art_and_Entertainment", where these are unlike."""
    words = [name.split("_")[0] for name in names]
    return words if len(set(words)) == len(words) else list(names)


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Names of at most so many columns, the long ones cut in the middle where they stay unlike all others.

    Where no place of the cut tells them apart, each one's number is in front of it.
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
    """A text of at most so many columns, whose first `head` columns stay."""
    if cell_len(text) <= width:
        return text
    return _start(text, head) + CUT + _start(text, width - head - 1, back=True)


def _start(text: str, width: int, *, back: bool = False) -> str:
    """As much of a text as goes into so many columns, from its start or from its end; characters stay whole."""
    spans, _ = split_graphemes(text)
    taken, used = 0, 0
    for _, _, size in reversed(spans) if back else spans:
        if used + size > width:
            break
        taken, used = taken + 1, used + size
    if not taken:
        return ""
    return text[spans[-taken][0] :] if back else text[: spans[taken - 1][1]]


def _fitting(grid: Grid, width: int) -> Widths | None:
    """Widths at which a grid fits: whole names under few lines of heading first, short names under many last."""
    whole = _widest(grid.names)
    short = min(whole, max([LEAST, *(cell_len(name.group) for name in grid.names)]))
    for names, gap, lines in [*product([whole], [2, 1], range(1, TALLEST)), *product([short], [2, 1], [TALLEST])]:
        columns = _columns(grid, lines)
        room = width - sum(columns) - gap * len(columns)
        if room >= names:
            return Widths(min(room, whole), columns, gap)
    return None


def _pieces(grid: Grid, width: int) -> Iterator[tuple[Grid, Widths]]:
    """A grid in several, each with as many of the columns as fit beside the names."""
    short = shortened([head.text for head in grid.heads], WORD)
    heads = [
        head._replace(text=cut) if max(map(cell_len, BREAK.split(head.text))) > WORD else head
        for head, cut in zip(grid.heads, short, strict=True)
    ]
    columns = _columns(grid._replace(heads=heads), TALLEST)
    names = min(_widest(grid.names), max(LEAST, min(MOST, width - 2 - max(columns))))
    pieces: list[list[int]] = []
    room = 0
    for place, wide in enumerate(columns):
        if room < wide + 2:
            pieces.append([])
            room = width - names
        pieces[-1].append(place)
        room -= wide + 2
    for places in pieces:
        cells = [[row[place] for place in places] for row in grid.cells]
        widths = Widths(names, [columns[place] for place in places], 2)
        yield Grid(grid.names, [heads[place] for place in places], cells), widths


def _widest(names: Sequence[Label]) -> int:
    return max(1, *(cell_len(text) for name in names for text in (name.text, name.group)))


def _columns(grid: Grid, lines: int) -> list[int]:
    """How wide each column is with headings of at most so many lines, where their words allow that."""
    found = []
    for place, head in enumerate(grid.heads):
        words = max(cell_len(piece.rstrip()) for piece in BREAK.split(head.text))
        widths = range(words, cell_len(head.text) + 1)
        fits = (width for width in widths if broken(head.text, width).count("\n") < lines)
        found.append(max([next(fits, words), *map(cell_len, _aligned([row[place] for row in grid.cells]))]))
    return found


def _aligned(numbers: Sequence[Number]) -> list[str]:
    """A column's numbers, with points and brackets below each other."""
    bounded = [one for one in numbers if one.low]
    widest = [max((cell_len(one[side]) for one in bounded), default=0) for side in range(len(Number._fields))]
    after = sum(widest[1:]) + len(" [, ]") if bounded else 0
    texts = []
    for value, low, high, mark in numbers:
        interval = f" [{low:>{widest[1]}}, {high:>{widest[2]}}]{mark}" if low else ""
        texts.append(f"{value:>{widest[0]}}{interval:<{after}}")
    return texts


def _drawn(grid: Grid, widths: Widths) -> Drawn:
    total = widths.names + sum(widths.columns) + widths.gap * len(widths.columns)
    table = Drawn(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, width=total, header_style="bold")
    table.add_column(width=widths.names, no_wrap=True)
    columns = []
    for place, (head, width) in enumerate(zip(grid.heads, widths.columns, strict=True)):
        # Columns of this box have one space between them.
        own, style = width + widths.gap - 1, Style(dim=head.quiet)
        heading = Text(broken(head.text, width), justify="right", style=style)
        table.add_column(heading, width=own, no_wrap=True, vertical="bottom", style=style)
        # Not justified by the table, which takes away the spaces that put points below each other.
        columns.append([text.rjust(own) for text in _aligned([row[place] for row in grid.cells])])
    names = shortened([name.text for name in grid.names], widths.names)
    group = ""
    for name, label, row in zip(names, grid.names, zip(*columns, strict=True), strict=True):
        if label.group != group:
            group = label.group
            table.add_row(Text(shortened([group], widths.names)[0]), style="italic")
        table.add_row(Text(_isolated(name)), *map(Text, row), style=Style(dim=label.quiet))
    return table


def _isolated(name: str) -> str:
    """A name that is read from the right keeps its direction from the numbers beside it."""
    return f"\u2068{name}\u2069" if RIGHT_TO_LEFT.search(name) else name
