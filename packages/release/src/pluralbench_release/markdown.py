"""Write texts of unknown origin into Markdown, and split Markdown into sections."""

import re
from dataclasses import dataclass
from itertools import pairwise

from pluralbench_runs.console import clean

# The line breaks of Markdown; `str.splitlines` also breaks at form feeds and U+2028.
LINES = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


# Intervals, which are no links; and what begins markup, with GitHub's links without brackets and formulas. Underscores
# within words do not.
MARKUP = re.compile(
    r"(\[[\d.,+−-][\d., +−-]*\](?![(\[:]))"
    r"|[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])|:(?=//)|(?<=www)\.|(?<=\w)@|^(?:[>#]|[-+=](?!\d))"
    r"|(?<=[ \t])#(?=#*\s*$)"
)
NUMBERED = re.compile(r"^(\d+)(?=[.)](?: |$))")


def escape_markdown(text: str) -> str:
    """Return Markdown that shows a text on one line, unchanged and without markup."""
    line = MARKUP.sub(lambda match: match[1] or f"\\{match[0]}", clean(text))
    return NUMBERED.sub(r"\1\\", line).replace("<", "&lt;")


def markdown_code(text: str) -> str:
    """Return Markdown that shows a text on one line as code."""
    line = clean(text) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if line.startswith("`") or line.endswith("`") else f"{fence}{line}{fence}"


@dataclass(frozen=True)
class Part:
    """A second-level heading with the text below it, including the heading; None for the text above the first one."""

    title: str | None
    text: str


def parts(text: str) -> list[Part]:
    """Split a text before each second-level heading that is not in a code block. The parts join to the text."""
    lines = LINES.split(text)
    from markdown_it import MarkdownIt

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
