"""The console of the commands. Text of unknown origin cannot control the terminal."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Control sequences and control strings, introduced by ESC or by one character. An unterminated string does not match.
ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*+(?:\x07|\x1b\\|\x9c)"
)
BIDI_CONTROLS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ISOLATES = set("\u2068\u2069")  # reports put these around names, so that a name does not reorder its neighbors


def sanitize(text: str, *, isolates: bool = False) -> str:
    """Remove escape sequences, control characters and marks of text direction from a text for the terminal.

    Args:
        text: The text.
        isolates: Keep the marks FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE.
    """
    removed = BIDI_CONTROLS - ISOLATES if isolates else BIDI_CONTROLS
    if text.isprintable():
        return text
    text = ESCAPE.sub("", text.replace("\r\n", "\n")).expandtabs(4)
    return "".join(
        letter for letter in text if letter == "\n" or (unicodedata.category(letter) != "Cc" and letter not in removed)
    )


class PlainConsole(Console):
    """A console that sanitizes all text, so that only its own styles control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(sanitize(segment.text, isolates=True), segment.style)


def make_console(**options: Any) -> PlainConsole:
    """Create a console that prints text unchanged, without markup, highlighting or wrapping."""
    return PlainConsole(**{"highlight": False, "markup": False, "emoji": False, "soft_wrap": True} | options)
