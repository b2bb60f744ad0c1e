"""Figures as SVG inside a page: their text stays text, their ids are unlike, and they have a title and a description."""

import re
from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DROPPED = {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}  # the page has the style of all of them
TO_ID = re.compile(r"url\(#([^)]+)\)")
PER_POINT = 4 / 3  # of a page's pixels


def inline_svg(drawn: "Figure", key: str, title: str, description: str = "") -> Markup:
    """A figure as an SVG element, at its own size. To be called in `pluralbench.reports.figures.style.drawing`.

    key: what its ids begin with, on this page of this figure alone. title, description: what a screen reader says.
    """
    text = StringIO()
    drawn.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    root = ET.fromstring(text.getvalue())  # noqa: S314 - drawn a line above
    for child in [child for child in root if child.tag in DROPPED]:
        root.remove(child)
    for element in root.iter():
        _rename(element, key)
    _size(root)
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
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
