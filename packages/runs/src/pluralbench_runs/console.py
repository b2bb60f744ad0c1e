"""What commands print to: whatever a stranger wrote reaches the terminal as text alone."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Control sequences and strings, by escape or by their one-character introducers; what is not ended is no string.
ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*+(?:\x07|\x1b\\|\x9c)"
)
REORDERING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


ISOLATES = set("\u2068\u2069")  # which reports put round a name, so that it turns nothing beside it


def sanitize(text: str, *, isolates: bool = False) -> str:
    """A text that a terminal takes as text: without escape sequences and whatever else controls it.

    isolates: keep those marks that only keep a name's direction from what stands beside it.
    """
    removed = REORDERING - ISOLATES if isolates else REORDERING
    if text.isprintable():
        return text
    bare = ESCAPE.sub("", text.replace("\r\n", "\n")).expandtabs(4)
    return "".join(
        letter for letter in bare if letter == "\n" or (unicodedata.category(letter) != "Cc" and letter not in removed)
    )


class PlainConsole(Console):
    """A console whose texts are `sanitize`, whatever they are part of; only its own styles control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(sanitize(segment.text, isolates=True), segment.style)


def make_console(**options: Any) -> PlainConsole:
    """A console that prints texts as they are, without markup, colours or line breaks of its own."""
    return PlainConsole(**{"highlight": False, "markup": False, "emoji": False, "soft_wrap": True} | options)
