"""Convert the HTML of a post back to Markdown without loss of meaning."""

import re

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

PLAIN = re.compile(r"[\w.+−-]+")
BACKTICKS = re.compile("`+")
LANGUAGE = re.compile(r"lang(?:uage)?-(?!none$)([\w+#-]+)")
ITEM_NUMBER = re.compile(r"[0-9]{1,9}")
MARKED = ["b", "strong", "i", "em", "s", "strike", "del", "code", "kbd", "samp"]
NO_DESCRIPTION = "enter image description here"  # what the sites' editor puts in for an author who writes none


def to_markdown(html: str) -> str:
    """Convert HTML to Markdown; `10<sup>6</sup>` becomes `10^6`, and `x<sub>i+1</sub>` becomes `x_i+1`.

    Only a leading `>` is escaped, which would turn the text into a quotation.
    """
    if not html:
        return ""
    # Beautiful Soup would warn about a text without a tag, which could be the name of a file.
    soup = _Soup(f"<body>{html}</body>", "lxml")
    for element in soup.find_all(MARKED):
        if isinstance(element.next_sibling, Tag) and element.next_sibling.name in MARKED:
            element.insert_after(" ")  # `**a****b**` would be one bold text
    return str(CONVERTER.convert_soup(soup)).strip()


class _Soup(BeautifulSoup):
    def pushTag(self, tag: Tag) -> None:  # noqa: N802 - overrides Beautiful Soup's method
        super().pushTag(tag)
        tag.attrs.pop("colspan", None)  # Markdown has none
        if tag.get("alt") == NO_DESCRIPTION:
            del tag["alt"]
        if not ITEM_NUMBER.fullmatch(str(tag.get("start", "1"))):
            del tag["start"]


class _Converter(MarkdownConverter):
    def escape(self, text: str, parent_tags: set[str]) -> str:
        return re.sub(r"^(\s*)>", r"\1\\>", text)

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _with_marker("^", text)

    def convert_sub(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _with_marker("_", text)

    convert_strike = MarkdownConverter.convert_del  # type: ignore[attr-defined]

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        fence = "`" * max(3, 1 + max(map(len, BACKTICKS.findall(text)), default=0))
        names = " ".join(str(name) for tag in (el, *el.find_all("code")) for name in tag.get_attribute_list("class"))
        language = LANGUAGE.search(names)
        code = text.strip("\n")
        return f"\n\n{fence}{language[1] if language else ''}\n{code}\n{fence}\n\n" if code else ""


def _with_marker(mark: str, text: str) -> str:
    """Put `mark` before a superscript or subscript, with parentheses if it is more than a word."""
    words = text.strip()
    return text.replace(words, mark + (words if PLAIN.fullmatch(words) else f"({words})"), 1) if words else text


CONVERTER = _Converter(
    bullets="-",
    heading_style="ATX",
    keep_inline_images_in=["a", "td", "th", *(f"h{level}" for level in range(1, 7))],
    wrap=True,  # line breaks of the HTML are spaces
    wrap_width=None,
)
