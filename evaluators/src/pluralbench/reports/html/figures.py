"""Figures as SVG inside a page: their text stays text, no two have an id in common, and screen readers name them."""

import re
from io import StringIO
from xml.etree import ElementTree as ET

from markupsafe import Markup

from pluralbench.reports.figures import Figure
from pluralbench.reports.html.components import figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DROPPED = {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}  # the page has the style of all of them
TO_ID = re.compile(r"url\(#([^)]+)\)")
PER_POINT = 4 / 3  # of a page's pixels


def inlined_figure(key: str, svg: str, drawn: Figure) -> Markup:
    """A figure for a page, whose title and note (see `style.heading`) the page sets itself, so that they wrap.

    To be called in `pluralbench.reports.figures.style.drawing`. svg: what its ids begin with, of this figure alone.
    """
    above, below = drawn.texts[-2:]
    title, note = (" ".join(text.get_text().split()) for text in (above, below))
    for text in (above, below):
        text.set_visible(False)
    written = StringIO()
    drawn.savefig(written, format="svg", bbox_inches="tight", metadata={"Date": None})
    return figure(key, _as_part(written.getvalue(), svg, title, note), title, note)


def _as_part(svg: str, key: str, title: str, note: str) -> Markup:
    """An SVG file as an element of a page, which screen readers know by its title."""
    root = ET.fromstring(svg)  # noqa: S314 - matplotlib has just drawn it
    for child in [child for child in root if child.tag in DROPPED]:
        root.remove(child)
    for element in root.iter():
        _rename(element, key)
    _size(root)
    for place, (tag, words) in enumerate((("title", title), ("desc", note))):
        said = ET.Element(f"{{{SVG}}}{tag}", {"id": f"{key}-{tag}"})
        said.text = words
        root.insert(place, said)
    root.attrib |= {"role": "img", "aria-labelledby": f"{key}-title", "aria-describedby": f"{key}-desc"}
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - an element tree escapes its texts


def _rename(element: ET.Element, key: str) -> None:
    """Put the key before an element's id, and before those it refers to."""
    link = f"{{{XLINK}}}href"
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{key}-{value}")
        elif name == link and value.startswith("#"):
            element.set(name, f"#{key}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, TO_ID.sub(rf"url(#{key}-\1)", value))


def _size(root: ET.Element) -> None:
    """The size in pixels, as numbers that a page can scale."""
    for side in ("width", "height"):
        root.set(side, f"{float(root.get(side, '0').removesuffix('pt')) * PER_POINT:.0f}")
