"""Inline SVG figures for a page: selectable text, unique ids, and titles for screen readers."""

import re
from collections.abc import Iterator, Mapping
from io import StringIO

from markupsafe import Markup, escape

from pluralbench.reports.figures import Figure
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.theme import with_variables
from pluralbench.reports.html.parts import part

DROPPED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)  # the page's style covers all figures
TAG = re.compile(r"<[^<>]+>")
REFERENCE = re.compile(r'((?<= id=")|(?<=url\(#)|(?<=href="#))')
SIZE = re.compile(r'\b(width|height)="([\d.]+)pt"')
PER_POINT = 4 / 3  # of a page's pixels


def inlined_figure(key: str, svg: str, drawn: Figure) -> Markup:
    """Inline a figure into a page, which shows the title and note (see `draw.heading`) as wrapping text.

    Call it within `pluralbench.reports.figures.files.drawing`.

    Args:
        svg: Prefix of the ids in the SVG, unique to this figure.
    """
    above, below = drawn.texts[-2:]
    title, note = (" ".join(text.get_text().split()) for text in (above, below))
    for text in (above, below):
        text.set_visible(False)
    buffer = StringIO()
    drawn.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None}, facecolor="none")
    return part("figure", key, _inline_svg(with_variables(buffer.getvalue()), svg, title, note), title, note)


def inlined_figures(key: str, charts: Mapping[str, Chart]) -> Iterator[Markup]:
    """Draw charts and inline them; see `inlined_figure`.

    Args:
        key: Prefix of the ids.
        charts: Charts by file stem. An empty one is left out.
    """
    for stem, chart in charts.items():
        if not chart.empty:
            yield inlined_figure(f"{key}-figure-{stem}", f"{key}-svg-{stem}", figure_of(chart))


def _inline_svg(svg: str, key: str, title: str, note: str) -> Markup:
    """An SVG file of matplotlib as an element of a page: unique ids, a size in pixels, and a title and description."""
    body = DROPPED.sub("", svg[svg.index("<svg") :])
    body = TAG.sub(lambda tag: REFERENCE.sub(rf"\1{key}-", tag[0]), body)
    body = SIZE.sub(lambda side: f'{side[1]}="{float(side[2]) * PER_POINT:.0f}"', body, count=2)
    described = f' role="img" aria-labelledby="{key}-title" aria-describedby="{key}-desc">'
    labels = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(note)}</desc>'
    return Markup(body.replace(">", described + labels, 1))  # noqa: S704 - matplotlib has just drawn it
