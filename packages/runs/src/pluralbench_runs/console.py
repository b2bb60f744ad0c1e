"""The console of the commands. Text of unknown origin cannot control the terminal."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style

# Control sequences and control strings, introduced by ESC or by one character. An unterminated string does not match.
ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*+(?:\x07|\x1b\\|\x9c)"
)
# Control characters, and marks that embed, override or isolate a direction. The marks U+200E, U+200F and U+061C only
# place the punctuation of right-to-left texts, and joiners are part of emoji and of Persian and Indic words.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Reports put FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE around names, so that a name does not reorder its
# neighbors.
NOT_ISOLATES = re.compile(CONTROLS.pattern.replace("\u2069", "\u2067"))
UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
DEFAULT_WIDTH = 80


def sanitize(text: str, *, isolates: bool = False) -> str:
    """Remove escape sequences, control characters and marks that change the text direction, for the terminal.

    `isolates` keeps the marks FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE.
    """
    if text.isprintable():
        return text
    text = ESCAPE.sub("", text.replace("\r\n", "\n")).expandtabs(4)
    return (NOT_ISOLATES if isolates else CONTROLS).sub("", text)


def clean(text: str) -> str:
    """Return a sanitized text on one line; lone surrogates are escaped."""
    return " ".join(sanitize(text).encode(errors="backslashreplace").decode().split())


def terminal_json(value: Any) -> str:
    """Format a value as JSON in which control characters and marks of text direction are escaped, so none is lost."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainStream:
    """Standard output or error of a command: what libraries print and log to it cannot control the terminal."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write a text. A progress bar may return to the beginning of its line first."""
        start = "\r" * text.startswith("\r")
        self.stream.write(start + sanitize(text, isolates=True))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """See `io.IOBase.writelines`."""
        for line in lines:
            self.write(line)


@contextmanager
def plain_streams() -> Iterator[None]:
    """Sanitize what is written to standard output and error while this context lasts."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and PlainStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class PlainConsole(Console):
    """A console that sanitizes all text, so that only its own styles control the terminal."""

    @property
    def file(self) -> IO[str]:
        """The stream to which this console writes its styles."""
        file: Any = super().file
        stream: IO[str] = file.stream if isinstance(file, PlainStream) else file
        return stream

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `rich.console.Console.render`."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else sanitize(text, isolates=True), _unlinked(style), control)


def _unlinked(style: Style | None) -> Style | None:
    """The style without a link, which rich takes from texts that other code prints while a progress bar is drawn."""
    return style.update_link() if style is not None and style.link else style


def make_console(**options: Any) -> PlainConsole:
    """Create a console that prints text unchanged, without markup, highlighting or wrapping."""
    console = PlainConsole(**{"highlight": False, "markup": False, "emoji": False, "soft_wrap": True} | options)
    if console.width < 1:  # COLUMNS=0, with which nothing would be printed
        console.width = DEFAULT_WIDTH
    return console
