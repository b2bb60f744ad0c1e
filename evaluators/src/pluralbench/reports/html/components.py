"""Components of an HTML page: frame, tables with interval bars, figures, collapsible details and the item browser.

Each component takes typed data and returns `Markup`; jinja2 templates escape everything else. A page contains its
styles and scripts and loads nothing, which its content security policy enforces.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import output_file

from pluralbench.errors import EvaluationError
from pluralbench.results import numbers
from pluralbench.results.numbers import Kind, percent

NOTHING = Markup()
ASSETS = ("page", "filters", "items")
WORD_END = re.compile(r"(?<=_)|(?<=[a-z])(?=[A-Z][a-z])")
NARROW, WIDE = 6, 8  # columns of a table that has room for intervals beside numbers, and of one that is set tightly
TALL = 8  # a table with at least so many rows has a search box
MARK = "The line across a bar: a coin, or 0 for differences."
Order = Literal["ascending", "descending"]


class Head(NamedTuple):
    """Heading of a column.

    Attributes:
        number: The column holds numbers.
        order: How the rows are already sorted by this column, if they are.
        link: Address of a link next to the heading.
    """

    text: str
    number: bool = True
    order: Order | None = None
    link: str = ""


class Shape(NamedTuple):
    """A bar in a cell: a value and its interval, from 0 (left) to 100 (right).

    Attributes:
        mark: Position of a reference line.
    """

    at: float
    low: float | None = None
    high: float | None = None
    mark: float | None = None


class Cell(NamedTuple):
    """Content of a cell.

    Attributes:
        order: Number to sort by; "" if the number is missing, None to sort by the text.
        interval: Bounds, shown below the text.
        below: A few words below the bounds.
        link: Address that the text links to.
    """

    text: str
    order: float | Literal[""] | None = None
    shape: Shape | None = None
    interval: str = ""
    below: str = ""
    link: str = ""

    @property
    def number(self) -> bool:
        """Whether the cell is aligned to the right, as numbers are."""
        return self.order is not None


class Row(NamedTuple):
    """A row, whose first cell is its name.

    Attributes:
        quiet: The row is a baseline and is shown dimmed below the other rows, however these are sorted.
        facets: The row's values by filter; see `filters`.
    """

    cells: Sequence[Cell]
    quiet: bool = False
    facets: Mapping[str, Sequence[str]] | None = None


class Scale(NamedTuple):
    """The values at the left and right end of the bars in a column.

    Attributes:
        mark: Value at which the bars have a reference line.
    """

    low: float
    high: float
    mark: float | None = None

    def shape(self, estimate: Estimate) -> Shape | None:
        """Return the bar of a number; None if it is missing."""
        if estimate.value is None:
            return None
        mark = None if self.mark is None or not self.low <= self.mark <= self.high else self._position(self.mark)
        if estimate.low is None or estimate.high is None:
            return Shape(self._position(estimate.value), mark=mark)
        low, high = self._position(estimate.low), self._position(estimate.high)
        return Shape(self._position(estimate.value), low, high, mark)

    def _position(self, value: float) -> float:
        return round(100 * (value - self.low) / ((self.high - self.low) or 1.0), 1)


class Finding(NamedTuple):
    """A sentence about a subject.

    Attributes:
        subject: What the sentence is about, before a colon.
        link: Address that the subject links to.
    """

    text: str
    subject: str
    link: str = ""


class Link(NamedTuple):
    """A link in the navigation."""

    to: str
    text: str


def scale_of(numbers: Iterable[Estimate], mark: float | None = None) -> Scale | None:
    """Return a scale that covers the numbers, their intervals and the mark; None if there are no numbers."""
    ends = [end for one in numbers for end in (one.value, one.low, one.high) if end is not None]
    if not ends:
        return None
    ends += [] if mark is None else [mark]
    return Scale(min(ends), max(ends), mark)


def number(estimate: Estimate, kind: Kind = percent, *, scale: Scale | None = None) -> Cell:
    """Make a cell of a number with its interval; a dash if it is missing.

    Args:
        scale: Scale of the cell's bar. Default: no bar.
    """
    value, low, high, _ = numbers.number(estimate, kind)
    order: float | Literal[""] = "" if estimate.value is None else estimate.value
    return Cell(value, order, scale and scale.shape(estimate), f"{low} to {high}" if low else "")


def table(
    key: str,
    caption: str,
    heads: Sequence[Head],
    rows: Sequence[Row],
    *,
    notes: Sequence[str] = (),
    provenance: Markup = NOTHING,
    search: str | None = None,
) -> Markup:
    """Make a table with sortable columns.

    Args:
        key: Id of the table on the page.
        notes: Sentences below the table.
        provenance: Markup below the notes.
        search: Label of the search box. Default: "Search" for a table of at least `TALL` rows, else no box.
    """
    own = [row for row in rows if not row.quiet]
    if any(cell.shape is not None and cell.shape.mark is not None for row in rows for cell in row.cells):
        notes = [*notes, MARK]
    label = ("Search" if len(own) >= TALL else "") if search is None else search
    bodies = [body for body in (own, [row for row in rows if row.quiet]) if body]
    return _render("table", key, caption, heads, bodies, notes, provenance, label, _width(len(heads)))


def _width(columns: int) -> str:
    return "narrow" if columns <= NARROW else "wide" if columns > WIDE else ""


def figure(key: str, svg: Markup, title: str, note: str = "") -> Markup:
    """Show an SVG figure (see `pluralbench.reports.html.figures`) with its title and a note."""
    return _render("figure", key, svg, title, note)


def section(heading: str, key: str, *parts: Markup, level: int = 2) -> Markup:
    """Put parts under a heading that `#key` links to."""
    return _render("section", heading, key, parts, level)


def details(summary: str, *parts: Markup, key: str = "", kind: str = "") -> Markup:
    """Make parts collapsible under a summary.

    Args:
        kind: CSS class, such as "sources".
    """
    return _render("details", summary, parts, key, kind)


def fold(heading: str, key: str, *parts: Markup, aside: str = "", unfolded: bool = False) -> Markup:
    """Put parts under a heading that unfolds them and that `#key` links to.

    Args:
        aside: A few words beside the heading.
        unfolded: Show the parts from the beginning.
    """
    return _render("fold", heading, key, parts, aside, unfolded)


def findings(lines: Sequence[Finding]) -> Markup:
    """List sentences, each after its subject."""
    return _render("findings", lines)


def browser(key: str, name: str, title: str, orders: Mapping[str, str], note: str) -> Markup:
    """Make the controls of an item browser, which `items.js` fills.

    Its data are blocks whose ids begin with the key (see `pluralbench.reports.html.items`).

    Args:
        name: Name of the browser in links to its items (`#item=NAME/CONFIG/ID`).
        orders: Titles of the sort orders, by name.
        note: What the browser contains.
    """
    return _render("browser", key, name, title, dict(orders), note)


def filters(choices: Mapping[str, tuple[str, Sequence[str]]], note: str = "") -> Markup:
    """Make filters that hide the rows of all tables on the page without the selected facets; see `Row`.

    Args:
        choices: Label and values by the name of a filter.
    """
    return _render("filters", choices, note)


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """List names and values, a line each."""
    return _render("facts", list(pairs))


def items(texts: Iterable[str]) -> Markup:
    """Make a list of sentences."""
    return _render("items", list(texts))


def paragraph(text: str) -> Markup:
    """Make a paragraph of plain text."""
    return _render("paragraph", text)


def block(key: str, data: bytes) -> Markup:
    """Embed data that a script decompresses on demand (gzip, base64)."""
    return _render("block", key, b64encode(compress(data, mtime=0)).decode())


def join(parts: Iterable[Markup]) -> Markup:
    """Join parts, one below the other."""
    return Markup("\n").join(parts)


def page(
    title: str,
    body: Markup,
    *,
    lead: str = "",
    navigation: Sequence[Link] = (),
    foot: Markup = NOTHING,
    blocks: Iterable[Markup] = (),
) -> str:
    """Render a page.

    Args:
        lead: Sentence below the title.
        foot: Content of the footer.
        blocks: Data for scripts.
    """
    code = [_asset(f"{name}.js") for name in ASSETS]
    style = join(_asset(f"{name}.css") for name in ASSETS)
    return str(_render("page", title, lead, navigation, body, foot, blocks, style, code, _policy(code)))


def save_page(text: str, out: Path) -> None:
    """Write a page, and the directories that it needs.

    Raises:
        EvaluationError: The file cannot be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with output_file(out) as new:
            new.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None


@cache
def _asset(name: str) -> Markup:
    """A style sheet or script of this package, unescaped."""
    text = files("pluralbench.reports.html").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - a file of this package


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: run only these scripts, load nothing."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src {hashes}"
    )


def _render(macro: str, *arguments: Any) -> Markup:
    markup: Markup = getattr(_templates(), macro)(*arguments)
    return markup


@cache
def _templates() -> Any:
    loader = PackageLoader("pluralbench.reports.html")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    templates.filters["breakable"] = _breakable
    return templates.get_template("parts.html").module


def _breakable(text: str) -> Markup:
    """Allow line breaks after underscores and between words such as RewardBench, where browsers do not break."""
    return Markup("<wbr>").join(WORD_END.split(text))
