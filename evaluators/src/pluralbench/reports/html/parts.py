"""Parts of an HTML page: the macros of `parts.html`, filled with tables and figures, and the page itself.

jinja2 escapes whatever is not markup. A page contains its styles and scripts and loads nothing, which its content
security policy enforces.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.paired import RankInterval
from pluralbench_runs import output_file
from pluralbench_runs.console import clean

from pluralbench.errors import EvaluationError
from pluralbench.metrics.metric import BASELINES
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.theme import with_variables
from pluralbench.reports.tables import Column, Table, Value, format_value, marks_in
from pluralbench.results.numbers import change, points
from pluralbench.results.runs import MISSING

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; script-src"
"""Content security policy: load nothing, and run only the scripts whose hashes follow."""
ASSETS = ("page", "filters", "items")
WORD_END = re.compile(r"(?<=_)|(?<=[a-z])(?=[A-Z][a-z])")
NARROW, WIDE = 6, 8  # columns of a table that has room for intervals beside numbers, and of one that is set tightly
TALL = 8  # a table with at least so many rows has a search box
DROPPED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)  # the page's style covers all figures
TAG = re.compile(r"<[^<>]+>")
REFERENCE = re.compile(r'((?<= id=")|(?<=url\(#)|(?<=href="#))')
SIZE = re.compile(r'\b(width|height)="([\d.]+)pt"')
PER_POINT = 4 / 3  # of a page's pixels
MARK = "The line across a bar: a coin, or 0 for differences."


class Bar(NamedTuple):
    """A value and its interval as a bar, from 0 (left) to 100 (right), and the position of a reference line."""

    at: float
    low: float | None
    high: float | None
    mark: float | None


class Cell(NamedTuple):
    """A cell: `order` sorts it, "" if a number is missing, None by the text; the interval stands below the text."""

    text: str
    order: float | Literal[""] | None = None
    interval: str = ""
    bar: Bar | None = None
    link: str = ""


class RunLink(NamedTuple):
    """What rows of a run have: the id of its details, and its values by filter."""

    key: str
    facets: Mapping[str, str]


def table(key: str, source: Table, *, notes: Sequence[str] = (), links: Mapping[Path, RunLink] = {}) -> Markup:
    """Render a table with sortable columns; `links` are what its rows have of their runs, by path."""
    by_column = [[row.values[place] for row in source.rows] for place in range(len(source.columns))]
    columns = [_cells(*pair, source) for pair in zip(source.columns, by_column, strict=True)]
    lines: dict[bool, list[tuple[list[Cell], Mapping[str, Sequence[str]] | None]]] = {False: [], True: []}
    filters = next((one.facets for one in links.values()), {})
    for row, *cells in zip(source.rows, *columns, strict=True):
        group = [Cell(clean(row.group))] if source.groups else []
        linked = bool(links) and not row.quiet
        own = [links[run.path] for run in row.runs] if linked else []
        head = Cell(clean(row.name), link=f"#{own[0].key}" if own else "")
        facets = {name: list(dict.fromkeys(one.facets[name] for one in own)) for name in filters} if linked else None
        lines[row.quiet].append(([head, *group, *cells], facets))
    texts = [[isinstance(one, str) and one != "" for one in values] for values in by_column]
    heads = [(source.names, False), *([(source.groups, False)] if source.groups else [])]
    heads += [(clean(column.text), not any(own)) for column, own in zip(source.columns, texts, strict=True)]
    marked = [MARK] if any(cell.bar and cell.bar.mark is not None for cells in columns for cell in cells) else []
    width = "narrow" if len(heads) <= NARROW else "wide" if len(heads) > WIDE else ""
    search = f"Search {source.names}s" if len(lines[False]) >= (2 if links else TALL) else ""
    bodies = [(quiet, body) for quiet, body in lines.items() if body]
    below = [*notes, *marks_in([source]), *marked]
    return part("table", key, clean(source.title), heads, bodies, below, search, width)


def _cells(column: Column, values: Sequence[Value], source: Table) -> list[Cell]:
    """The cells of a column; numbers with intervals have bars, with a line at the coin's number, or at 0.

    Parts have no bars, so that a table stays narrow.
    """
    estimates = [value for value in values if isinstance(value, Estimate)]
    named = {row.name: value for row, value in zip(source.rows, values, strict=True) if isinstance(value, Estimate)}
    mark = 0.0 if column.kind in {points, change} else named.get(BASELINES["coin"], MISSING).value
    drawn = column.bounds and not column.part and any(one.low is not None for one in estimates)
    ends = [end for one in estimates for end in (one.value, one.low, one.high, mark) if end is not None]

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * (value - min(ends)) / ((max(ends) - min(ends)) or 1.0), 1)

    cells = []
    for value in values:
        text, low, high, dagger = format_value(column, value)
        bar = None
        if drawn and isinstance(value, Estimate) and (position := at(value.value)) is not None:
            bar = Bar(position, at(value.low), at(value.high), at(mark))
        cells.append(Cell(clean(text), _order(value), f"{low} to {high}{dagger}" if low else "", bar))
    return cells


def _order(value: Value) -> float | Literal[""] | None:
    if isinstance(value, str) and value:
        return None
    number = value.value if isinstance(value, Estimate) else value.best if isinstance(value, RankInterval) else value
    return number if isinstance(number, int | float) else ""


def part(macro: str, *arguments: Any) -> Markup:
    """Render a macro of the template `parts.html`."""
    markup: Markup = getattr(_templates(), macro)(*arguments)
    return markup


def inlined_figures(key: str, charts: Mapping[str, Chart]) -> Iterator[Markup]:
    """Draw charts and inline them: selectable text, and titles and notes that screen readers read and that wrap.

    Call it within `pluralbench.reports.figures.files.drawing`. The key is the prefix of the ids.
    """
    for stem, chart in charts.items():
        if not chart.empty:
            drawn, buffer = figure_of(chart), StringIO()
            above, below = drawn.texts[-2:]  # title and note; see `draw.heading`
            title, note = (" ".join(text.get_text().split()) for text in (above, below))
            for text in (above, below):
                text.set_visible(False)
            drawn.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None}, facecolor="none")
            svg = _inline_svg(with_variables(buffer.getvalue()), f"{key}-svg-{stem}", title, note)
            yield part("figure", f"{key}-figure-{stem}", svg, title, note)


def _inline_svg(svg: str, key: str, title: str, note: str) -> Markup:
    """An SVG file of matplotlib as an element of a page: unique ids, a size in pixels, and a title and description."""
    body = DROPPED.sub("", svg[svg.index("<svg") :])
    body = TAG.sub(lambda tag: REFERENCE.sub(rf"\1{key}-", tag[0]), body)
    body = SIZE.sub(lambda side: f'{side[1]}="{float(side[2]) * PER_POINT:.0f}"', body, count=2)
    described = f' role="img" aria-labelledby="{key}-title" aria-describedby="{key}-desc">'
    labels = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(note)}</desc>'
    return Markup(body.replace(">", described + labels, 1))  # noqa: S704 - matplotlib has just drawn it


def block(key: str, value: Any) -> Markup:
    """Embed a value of JSON that a script decompresses on demand (gzip, base64)."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return part("block", key, b64encode(compress(data, mtime=0)).decode())


def page(title: str, sections: Mapping[str, tuple[str, Markup]], lead: str = "", blocks: Iterable[Markup] = ()) -> str:
    """Render a page with sections (title and content by id) and data for scripts."""
    code = [_asset(f"{name}.js") for name in ASSETS]
    style = Markup("\n").join(_asset(f"{name}.css") for name in ASSETS)
    hashes = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in code)
    whole = part("page", title, lead, sections, list(blocks), style, code, f"{POLICY} {hashes}")
    return CONTROLS.sub("", whole)  # which HTML does not allow, and who prints the file would obey


def save_page(text: str, out: Path) -> None:
    """Write a page, and the directories that it needs. Raises `EvaluationError` if that is not possible."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with output_file(out) as new:
            new.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None


@cache
def _asset(name: str) -> Markup:
    text = files("pluralbench.reports.html").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - a file of this package


@cache
def _templates() -> Any:
    loader = PackageLoader("pluralbench.reports.html")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    templates.filters["breakable"] = _breakable
    return templates.get_template("parts.html").module


def _breakable(text: str) -> Markup:
    """Allow line breaks after underscores and between words such as RewardBench, where browsers do not break."""
    return Markup("<wbr>").join(WORD_END.split(text))
