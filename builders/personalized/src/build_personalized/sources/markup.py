"""The HTML of a post as Markdown, in which the post was written: nothing that carries meaning is lost."""

import re

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

# The longest posts of the sites keep far below these. Beyond them a converter takes minutes.
TAGS = 10_000
DEPTH = 32
PLAIN = re.compile(r"[\w.+−-]+")
BACKTICKS = re.compile("`+")
LANGUAGE = re.compile(r"lang(?:uage)?-(?!none$)([\w+#-]+)")
ITEM_NUMBER = re.compile(r"[0-9]{1,9}")


def to_markdown(html: str) -> str:
    """Markdown of HTML; `10<sup>6</sup>` is `10^6`, and `x<sub>i+1</sub>` is `x_i+1`.

    Only what would make a quotation of a text is escaped: a `>` with which it begins.

    Raises `ValueError`, a clause that follows a name, for HTML that would take too long.
    """
    if html.count("<") > TAGS:
        raise ValueError(f"has more than {TAGS:,} tags, which are as many as are read")
    # A text without a tag could be taken for the name of a file.
    text = CONVERTER.convert_soup(_Soup(f"<body>{html}</body>", "lxml")) if html else ""
    return text.strip()


class _Soup(BeautifulSoup):
    def pushTag(self, tag: Tag) -> None:  # noqa: N802 - the name is of Beautiful Soup
        super().pushTag(tag)
        if len(self.tagStack) > DEPTH:
            raise ValueError(f"has elements nested deeper than {DEPTH}, which is as deep as is read")
        tag.attrs.pop("colspan", None)  # by which a short table becomes a long one
        if not ITEM_NUMBER.fullmatch(str(tag.get("start", "1"))):
            del tag["start"]


class _Converter(MarkdownConverter):
    def escape(self, text: str, parent_tags: set[str]) -> str:
        return re.sub(r"^(\s*)>", r"\1\\>", text)

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _marked("^", text)

    def convert_sub(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _marked("_", text)

    convert_strike = MarkdownConverter.convert_del  # type: ignore[attr-defined]

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        fence = "`" * max(3, 1 + max(map(len, BACKTICKS.findall(text)), default=0))
        names = " ".join(str(name) for tag in (el, *el.find_all("code")) for name in tag.get_attribute_list("class"))
        language = LANGUAGE.search(names)
        code = text.strip("\n")
        return f"\n\n{fence}{language[1] if language else ''}\n{code}\n{fence}\n\n" if code else ""


def _marked(mark: str, text: str) -> str:
    """A text that stands higher or lower, after `mark` and in parentheses where it is more than a word."""
    words = text.strip()
    return text.replace(words, mark + (words if PLAIN.fullmatch(words) else f"({words})"), 1) if words else text


CONVERTER = _Converter(
    bullets="-",
    heading_style="ATX",
    keep_inline_images_in=["a", "td", "th", *(f"h{level}" for level in range(1, 7))],
    wrap=True,  # line breaks of the HTML are spaces
    wrap_width=None,
)
