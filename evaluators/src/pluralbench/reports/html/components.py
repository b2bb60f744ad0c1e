"""The parts of a page of HTML: its frame, tables with bars beside their numbers, figures, and folded details.

What is put in is typed data, and each part is `Markup`, made by jinja2's templates, which escape whatever is not. A
page holds its style and scripts and asks for nothing else; a policy in it keeps the browser to that.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports import numbers
from pluralbench.reports.numbers import Kind, percent

NOTHING = Markup()
ASSETS = ("page", "filters", "items")
TALL = 8  # rows from which on a table can be searched
Order = Literal["ascending", "descending"]


class Head(NamedTuple):
    """What is above a column. number: it is of numbers. order: how the rows are sorted by it already.

    link: an address beside it.
    """

    text: str
    number: bool = True
    order: Order | None = None
    link: str = ""


class Shape(NamedTuple):
    """A value and its interval drawn in a cell, each from 0 (left) to 100 (right). mark: a place to hold it against."""

    at: float
    low: float | None = None
    high: float | None = None
    mark: float | None = None


class Cell(NamedTuple):
    """What stands in a cell. order: a number to sort by; "" where it is missing, None to sort by the text.

    interval: its bounds, below it. below: a few words under these. link: an address for the text.
    """

    text: str
    order: float | Literal[""] | None = None
    shape: Shape | None = None
    interval: str = ""
    below: str = ""
    link: str = ""

    @property
    def number(self) -> bool:
        """Whether it stands to the right, as numbers do."""
        return self.order is not None


class Row(NamedTuple):
    """A row, whose first cell names it. quiet: it is no result, but what results are held against.

    facets: what it can be filtered by (see `filters`): by the name of a filter the values that it has.
    """

    cells: Sequence[Cell]
    quiet: bool = False
    facets: Mapping[str, Sequence[str]] | None = None


class Scale(NamedTuple):
    """What the left and the right end of the bars in a column are. mark: a value to hold the others against."""

    low: float
    high: float
    mark: float | None = None

    def shape(self, found: Estimate) -> Shape | None:
        """The bar of a number, None where it is missing."""
        if found.value is None:
            return None
        mark = None if self.mark is None or not self.low <= self.mark <= self.high else self._place(self.mark)
        if found.low is None or found.high is None:
            return Shape(self._place(found.value), mark=mark)
        return Shape(self._place(found.value), self._place(found.low), self._place(found.high), mark)

    def _place(self, value: float) -> float:
        return round(100 * (value - self.low) / ((self.high - self.low) or 1.0), 1)


class Link(NamedTuple):
    """A link in the navigation."""

    to: str
    text: str


def scale_of(numbers: Iterable[Estimate], mark: float | None = None) -> Scale | None:
    """The scale that has room for some numbers and their intervals, and for the mark; None without a number."""
    ends = [end for one in numbers for end in (one.value, one.low, one.high) if end is not None]
    if not ends:
        return None
    ends += [] if mark is None else [mark]
    return Scale(min(ends), max(ends), mark)


def number(found: Estimate, kind: Kind = percent, *, scale: Scale | None = None) -> Cell:
    """A cell of a number with its interval; a dash where it is missing. scale: of its bar, if any."""
    value, low, high, _ = numbers.number(found, kind)
    order: float | Literal[""] = "" if found.value is None else found.value
    return Cell(value, order, scale and scale.shape(found), f"{low} to {high}" if low else "")


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
    """A table with sortable columns. key: its id on the page. notes: sentences below it. provenance: below these.

    search: the label of its search box, which a table of many rows has; None for "Search".
    """
    label = ("Search" if len(rows) >= TALL else "") if search is None else search
    return _part("table", key, caption, heads, rows, notes, provenance, label)


def figure(key: str, svg: Markup, title: str, note: str = "") -> Markup:
    """A drawn figure (see `pluralbench.reports.html.figures`) under its title, with a note below."""
    return _part("figure", key, svg, title, note)


def section(heading: str, key: str, *parts: Markup, level: int = 2) -> Markup:
    """Parts under a heading that can be linked to by `#key`."""
    return _part("section", heading, key, parts, level)


def details(summary: str, *parts: Markup, key: str = "", kind: str = "") -> Markup:
    """Parts that are folded under a summary. kind: a class that styles know, such as "sources"."""
    return _part("details", summary, parts, key, kind)


def browser(key: str, title: str, orders: Mapping[str, str], note: str) -> Markup:
    """The controls of a browser of items, which `items.js` fills. orders: their titles by name. note: what is there.

    Its data are blocks whose ids begin with the key (see `pluralbench.reports.html.items`).
    """
    return _part("browser", key, title, dict(orders), note)


def filters(choices: Mapping[str, tuple[str, Sequence[str]]], note: str = "") -> Markup:
    """Choices that hide the rows of all tables on the page that do not have the chosen facets; see `Row`.

    choices: by the name of a filter its label and values.
    """
    return _part("filters", choices, note)


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Names and values, a line each."""
    return _part("facts", list(pairs))


def items(texts: Iterable[str]) -> Markup:
    """Sentences as a list."""
    return _part("items", list(texts))


def paragraph(text: str) -> Markup:
    """A paragraph of plain text."""
    return _part("paragraph", text)


def block(key: str, data: bytes) -> Markup:
    """Data that a script unfolds when it is asked for: compressed by gzip, in base64."""
    return _part("block", key, b64encode(compress(data, mtime=0)).decode())


def join(parts: Iterable[Markup]) -> Markup:
    """Parts below each other."""
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
    """A whole page. lead: a sentence under the title. foot: what stands at its end. blocks: data for scripts."""
    code = [_asset(f"{name}.js") for name in ASSETS]
    style = join(_asset(f"{name}.css") for name in ASSETS)
    return str(_part("page", title, lead, navigation, body, foot, blocks, style, code, _policy(code)))


@cache
def _asset(name: str) -> Markup:
    """A style or script, which stands in a page as it is."""
    text = files("pluralbench.reports.html").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - it lies with the package


def _policy(scripts: Sequence[str]) -> str:
    """What the page's own policy lets a browser do: run these scripts, and load nothing from anywhere."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src {hashes}"
    )


def _part(name: str, *arguments: Any) -> Markup:
    made: Markup = getattr(_templates(), name)(*arguments)
    return made


@cache
def _templates() -> Any:
    loader = PackageLoader("pluralbench.reports.html")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    templates.filters["breakable"] = _breakable
    return templates.get_template("parts.html").module


def _breakable(text: str) -> Markup:
    """A text whose words may be broken after an underscore, which browsers do not by themselves."""
    return escape(text).replace("_", Markup("_<wbr>"))
