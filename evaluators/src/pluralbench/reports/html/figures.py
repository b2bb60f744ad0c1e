"""Inline SVG figures for a page: selectable text, unique ids, and titles for screen readers."""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from xml.etree import ElementTree as ET

from markupsafe import Markup

from pluralbench.reports.figures import Figure
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.theme import with_variables
from pluralbench.reports.html.parts import part

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DROPPED = {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}  # the page's own style covers all figures
TO_ID = re.compile(r"url\(#([^()]+)\)")
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
    """An SVG file as an element of a page, with a title for screen readers."""
    root = ET.fromstring(svg)  # noqa: S314 - matplotlib has just drawn it
    for child in [child for child in root if child.tag in DROPPED]:
        root.remove(child)
    for element in root.iter():
        _prefix_ids(element, key)
    _set_size(root)
    for index, (tag, text) in enumerate((("title", title), ("desc", note))):
        label = ET.Element(f"{{{SVG}}}{tag}", {"id": f"{key}-{tag}"})
        label.text = text
        root.insert(index, label)
    root.attrib |= {"role": "img", "aria-labelledby": f"{key}-title", "aria-describedby": f"{key}-desc"}
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - an element tree escapes its texts


def _prefix_ids(element: ET.Element, key: str) -> None:
    """Prefix an element's id and its references with the key."""
    link = f"{{{XLINK}}}href"
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{key}-{value}")
        elif name == link and value.startswith("#"):
            element.set(name, f"#{key}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, TO_ID.sub(rf"url(#{key}-\1)", value))


def _set_size(root: ET.Element) -> None:
    """Give the size in pixels, without a unit, so that a page can scale it."""
    for side in ("width", "height"):
        root.set(side, f"{float(root.get(side, '0').removesuffix('pt')) * PER_POINT:.0f}")
