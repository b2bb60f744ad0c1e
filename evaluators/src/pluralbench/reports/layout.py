"""Tables of texts in so many columns of a terminal: names are shortened, headings broken at word ends, cells whole."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from string import ascii_lowercase
from typing import NamedTuple

from rich import box
from rich.cells import cell_len, split_graphemes
from rich.style import Style
from rich.table import Table as Drawn
from rich.text import Text

WIDTH = 80  # columns of a terminal
NAME = 22  # columns of a name that is broken
LEAST = 16  # columns that names keep beside what else there is
LETTERED = 24  # the most columns of names in a table of several pieces
TALLEST = 8  # lines of a heading
DASH, CUT = "–", "…"
BREAK = re.compile(r"(?<=[-_/ :])|(?<=\.)(?!\d)")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


class Heading(NamedTuple):
    """What is above a column. part: a letter may stand for it, which a legend explains."""

    text: str
    part: bool = False


class Line(NamedTuple):
    """A row. quiet: it is no result, but what results are held against."""

    name: str
    cells: tuple[str, ...]
    quiet: bool = False


class Page(NamedTuple):
    """A table of texts: its title, what its names are of, its columns, and its rows."""

    title: str
    names: str
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]


class Laid(NamedTuple):
    """A page as it is drawn: one or more tables, which letters stand for what, and names that numbers stand for."""

    tables: list[Drawn | Text]
    legend: list[str]
    shortened: bool


class Widths(NamedTuple):
    """How wide names and columns are, and what is between them."""

    names: int
    columns: tuple[int, ...]
    gap: int


def lay_out(page: Page, width: int | None = WIDTH) -> Laid:
    """A page in at most `width` columns of a terminal; without, in as many as it needs.

    Where headings do not fit, letters stand for those of parts; where these do not either, columns go into several
    tables below each other. Names are shortened in the middle and stay unlike.
    """
    page = page._replace(
        title=clean(page.title),
        headings=tuple(Heading(clean(text), part) for text, part in page.headings),
        lines=tuple(line._replace(name=clean(line.name)) for line in page.lines),
    )
    if width is None:
        return _laid([(page, Widths(_widest_name(page), tuple(_columns(page, 1)), 2))], [], cell_len(page.title))
    found = _fitting(page, width)
    if found is not None:
        return _laid([(page, found)], [], width)
    lettered, legend = _lettered(page, width)
    found = _fitting(lettered, width)
    if found is not None:
        return _laid([(lettered, found)], legend, width)
    pieces, legend = _pieces(page, width)
    return _laid([(piece, _forced(piece, width)) for piece in pieces], legend, width)


def clean(text: str) -> str:
    """A text on one line, without what moves a cursor or turns the direction of what stands beside it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def broken(text: str, width: int = NAME) -> str:
    """A text on lines of at most so many columns, broken after a hyphen, underscore, dot, colon, slash or space."""
    lines = []
    for line in text.split("\n"):
        now = ""
        for part in BREAK.split(line):
            if now and cell_len(now) + cell_len(part.rstrip()) > width:
                lines.append(now.rstrip())
                now = ""
            now += part
        lines.append(now.rstrip())
    return "\n".join(lines)


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


def _fitting(page: Page, width: int) -> Widths | None:
    """Widths at which a page fits: whole names under few lines of heading first, short names under many last."""
    whole = _widest_name(page)
    short = min(whole, LEAST)
    for names, gap, lines in [
        *product([whole], [2, 1], range(1, TALLEST)),
        *product([short], [2, 1], [TALLEST]),
    ]:
        columns = tuple(_columns(page, lines))
        room = width - sum(columns) - gap * len(columns)
        if room >= names:
            return Widths(min(room, whole), columns, gap)
    return None


def _forced(page: Page, width: int) -> Widths:
    """Widths of a page whose names take what its columns leave."""
    columns = tuple(_columns(page, TALLEST))
    return Widths(min(_widest_name(page), width - sum(columns) - 2 * len(columns)), columns, 2)


def _widest_name(page: Page) -> int:
    return max(1, *(cell_len(line.name) for line in page.lines))


def _columns(page: Page, lines: int) -> Iterator[int]:
    """How wide each column is with headings of at most so many lines, where their words allow that."""
    for place, heading in enumerate(page.headings):
        words = [cell_len(piece.rstrip()) for piece in BREAK.split(heading.text)]
        widths = range(max(words), cell_len(heading.text) + 1)
        fits = (width for width in widths if broken(heading.text, width).count("\n") < lines)
        cells = (cell_len(line.cells[place]) for line in page.lines)
        yield max([*cells, next(fits, max(words))])


def _lettered(page: Page, width: int) -> tuple[Page, list[str]]:
    """A page with letters above its parts, and the sentence that explains them."""
    marks = _marks()
    named = {heading.text: next(marks) for heading in page.headings if heading.part}
    headings = tuple(Heading(named[text] if part else text) for text, part in page.headings)
    return page._replace(headings=headings), _legend(named, width)


def _pieces(page: Page, width: int) -> tuple[list[Page], list[str]]:
    """A page in several, each with some of the columns; a heading that is too wide for any gets a letter."""
    names = min(_widest_name(page), LETTERED)
    marks = _marks()
    named: dict[str, str] = {}
    pieces: list[list[int]] = []
    headings = []
    room = 0
    for place, (heading, wide) in enumerate(zip(page.headings, _columns(page, TALLEST), strict=True)):
        cells = max(cell_len(line.cells[place]) for line in page.lines)
        if wide > max(LETTERED, cells):
            named[heading.text] = next(marks)
        headings.append(Heading(named.get(heading.text, heading.text)))
        taken = 2 + (max(cells, len(named[heading.text])) if heading.text in named else wide)
        if not pieces or room < taken:
            pieces.append([])
            room = width - names
        pieces[-1].append(place)
        room -= taken
    return [
        Page(
            page.title,
            page.names,
            tuple(headings[place] for place in places),
            tuple(line._replace(cells=tuple(line.cells[place] for place in places)) for line in page.lines),
        )
        for places in pieces
    ], _legend(named, width)


def _marks() -> Iterator[str]:
    return ("".join(letters) for size in range(1, 4) for letters in product(ascii_lowercase, repeat=size))


def _legend(named: dict[str, str], width: int) -> list[str]:
    texts = shortened(list(named), width - 8) if named else []
    return ["; ".join(f"{mark}: {text}" for mark, text in zip(named.values(), texts, strict=True))] if named else []


def _laid(pieces: list[tuple[Page, Widths]], legend: list[str], width: int) -> Laid:
    cut = any(widths.names < _widest_name(page) for page, widths in pieces)
    return Laid([part for page, widths in pieces for part in _drawn(page, widths, width)], legend, cut)


def _drawn(page: Page, widths: Widths, widest: int) -> Iterator[Drawn | Text]:
    """A table, its title above the names where there is room for it, else in front of it."""
    headings = [broken(heading.text, width) for heading, width in zip(page.headings, widths.columns, strict=True)]
    title = broken(page.title, widths.names)
    tallest = max(heading.count("\n") for heading in headings)
    if title.count("\n") > tallest or max(map(cell_len, title.split("\n"))) > widths.names:
        lines = broken(page.title, widest).split("\n")
        yield Text("\n".join(_cut(line, widest // 2, widest) for line in lines), style="bold")
        title = ""
    total = widths.names + sum(widths.columns) + widths.gap * len(widths.columns)
    table = Drawn(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, width=total, header_style="bold")
    table.add_column(Text(title), width=widths.names, no_wrap=True, vertical="bottom")
    for heading, width in zip(headings, widths.columns, strict=True):
        # Columns of this box have one space between them.
        table.add_column(Text(heading, justify="right"), width=width + widths.gap - 1, no_wrap=True, vertical="bottom")
    names = shortened([line.name for line in page.lines], widths.names)
    for name, line in zip(names, page.lines, strict=True):
        # Not justified by the table, which takes away the spaces that put points below each other.
        cells = (cell.rjust(width + widths.gap - 1) for cell, width in zip(line.cells, widths.columns, strict=True))
        table.add_row(Text(_isolated(name)), *map(Text, cells), style=Style(dim=line.quiet))
    yield table


def _isolated(name: str) -> str:
    """A name that is read from the right keeps its direction from the numbers beside it."""
    return f"\u2068{name}\u2069" if RIGHT_TO_LEFT.search(name) else name
