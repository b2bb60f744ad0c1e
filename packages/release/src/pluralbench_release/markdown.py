"""The parts of a Markdown text."""

import re
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt

# Where Markdown begins a line: `str.splitlines` would also do so after a form feed or U+2028.
LINES = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


@dataclass(frozen=True)
class Part:
    """A heading of the second level and what follows it, as it is. title: the heading; None of what precedes all."""

    title: str | None
    text: str


def parts(text: str) -> list[Part]:
    """A text cut before each heading of the second level; their texts one after the other are the text again.

    What looks like a heading in a block of code is none.
    """
    lines = LINES.split(text)
    tokens = MarkdownIt("commonmark").parse(text)
    starts = [
        (token.map[0], content.content)
        for token, content in pairwise(tokens)
        if token.type == "heading_open" and token.tag == "h2" and token.map is not None and token.level == 0
    ]
    bounds = [0, *(line for line, _ in starts), len(lines)]
    titles = [None, *(title for _, title in starts)]
    return [
        Part(title, "".join(lines[first:last])) for title, (first, last) in zip(titles, pairwise(bounds), strict=True)
    ]
