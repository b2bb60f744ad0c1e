"""Mask spans that a translation must not change: code, LaTeX, URLs, placeholders, numbers.

In the text that is sent, each span is replaced by a mark: a number in square brackets, which translators keep and may
move. Afterwards each mark must occur once and is replaced by its span. Every search takes time linear in the length of
the text, whatever it contains.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

Span = tuple[int, int]

FENCE = re.compile(
    r"(?P<before>[ \t]*(?P<quote>(?:>[ \t]?)*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
)
# A fence at the end of a line of text, which people also write.
LATE_FENCE = re.compile(r"(?<!`)(?P<fence>`{3,})[\w+#.-]*[ \t]*$")
BACKTICKS = re.compile("`+")
BEGIN = re.compile(r"\\begin\{([A-Za-z]{1,40}\*?)\}")
BRACES = r"\{[^{}\n]{0,400}+\}"
NESTED = rf"\{{(?:[^{{}}\n]|{BRACES}|\{{(?:[^{{}}\n]|{BRACES}){{0,400}}+\}}){{0,400}}+\}}"
LATEX = re.compile(
    r"\$\$(?:[^$]|\$(?!\$))+\$\$"
    # As in pandoc: a dollar sign next to white space or before a digit is money.
    r"|(?<![\\$])\$(?=\S)[^$\n]{0,999}(?<=\S)\$(?![\d$])"
    rf"|\\[A-Za-z]{{1,40}}+(?:{NESTED})+"
)
URL_END = r"\s<>\"'`)\]“”„‘’«»"
URL = re.compile(rf"(?:\b(?:https?|ftp)://|\bwww\.)[^{URL_END}]*[^{URL_END}.,;:!?]")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}+@(?:[\w-]{1,63}+\.){1,9}[\w-]{1,63}")
PLACEHOLDER = re.compile(
    r"\$?\{\{?[^{}\n]{0,200}\}?\}|%\(\w{1,64}\)[sdif]|(?<![\w%])%(?:\.\d{1,3})?[sdif](?!\w)"
    r"|</?[A-Za-z][^<>\n]{0,400}>|\[[A-Z][A-Z0-9_]{1,64}\]|(?<!\w)\$[A-Za-z_]\w{0,64}"
)
# Digits with separators and an optional unit directly after them (10:30pm), or digits alone; digits in a word (h2o,
# COVID-19) belong to the word.
AMOUNT = r"(?<![\w.])(?<!\w[-–])(?:\.?\d++(?:[.,:/'’–-]\d++)++(?:[A-Za-z°µ%]\w{0,11}+|%)?(?:\.m\.)?|\.?\d++%?)(?!\w)"
# Numbers joined by operators are one span: nothing in it needs translation.
NUMBER = re.compile(rf"\[\d{{1,9}}\]|{AMOUNT}(?:[ \t]?[-+*/×÷·=<>≤≥^]{{1,3}}+[ \t]?{AMOUNT})*")

# Translators may write digits in the script of the language, and full-width brackets.
MARK = re.compile(r"[\[［【]\s{0,3}(\d+)\s{0,3}[\]］】]")
MAX_MARK_DIGITS = 9
WORD = re.compile(r"[^\W\d_]+")


class PlaceholderLost(Exception):
    """Translation that does not contain each mark once; the message is the reason."""


@dataclass(frozen=True)
class MaskedText:
    """Text with masked spans.

    Attributes:
        parts: Text between the spans, one part more than there are spans.
        spans: Kind and text of each span, by the number in its mark.
    """

    parts: tuple[str, ...]
    spans: tuple[tuple[str, str], ...]

    @cached_property
    def text(self) -> str:
        """Text with marks, as it is sent."""
        marked = [f"{part}[{number}]" for number, part in enumerate(self.parts[:-1])]
        return "".join(marked) + self.parts[-1]

    @cached_property
    def prose(self) -> str:
        """Text without the spans: what has to be translated."""
        return " ".join(self.parts)

    def words(self, limit: int | None = None) -> list[str]:
        """Return the words of the prose, without digits, or the first `limit` of them."""
        return [match[0] for match in islice(WORD.finditer(self.prose), limit)]

    @cached_property
    def length(self) -> int:
        """Characters of the prose, without white space."""
        return len("".join(self.prose.split()))

    def __getstate__(self) -> dict[str, object]:
        """Return the state for other processes: without derived texts, but with the length, which is slow to count."""
        return {"parts": self.parts, "spans": self.spans, "length": self.length}

    def restore(self, translated: str) -> str:
        """Replace the marks in a translation by their spans.

        Raises:
            PlaceholderLost: A mark is missing, repeated or new.
        """
        parts = _split_marks(translated)
        numbers = [int(digits) if len(digits) <= MAX_MARK_DIGITS else -1 for digits in parts[1::2]]
        counts = Counter(numbers)
        for number, (kind, _) in enumerate(self.spans):
            if counts[number] != 1:
                raise PlaceholderLost(f"{'repeated' if counts[number] else 'lost'} {kind}")
        if len(numbers) > len(self.spans):
            raise PlaceholderLost("added a number in brackets")
        parts[1::2] = [self.spans[number][1] for number in numbers]
        return "".join(parts)


def _split_marks(text: str) -> list[str]:
    """Split at marks: text and the digits of a mark in turn, beginning and ending with text."""
    return MARK.split(text) if "[" in text or "［" in text or "【" in text else [text]


def mask(text: str) -> MaskedText:
    """Find and mask the spans of a text that a translation must not change."""
    segments: list[tuple[str, str]] = [("", text)]  # kind and text; no kind for text that is not masked
    for kind, find in FINDERS:
        segments = [new for old in segments for new in ([old] if old[0] else _split(old[1], kind, find(old[1])))]
    parts, spans = [""], []
    for kind, segment in segments:
        if kind:
            spans.append((kind, segment))
            parts.append("")
        else:
            parts[-1] += segment
    return MaskedText(tuple(parts), tuple(spans))


def strip_marks(translated: str) -> str:
    """Replace the marks in a translation by spaces."""
    return " ".join(_split_marks(translated)[::2])


def has_letters(text: str) -> bool:
    """Return whether a text has anything to translate."""
    return WORD.search(text) is not None


def _split(text: str, kind: str, spans: Iterator[Span]) -> Iterator[tuple[str, str]]:
    end = 0
    for start, stop in spans:
        yield "", text[end:start]
        yield kind, text[start:stop]
        end = stop
    yield "", text[end:]


def _fenced(text: str) -> Iterator[Span]:
    """Find fenced code as in CommonMark: up to a fence at least as long, the end of the quotation or of the text."""
    opened: tuple[int, str, bool] | None = None  # position, fence, whether in a quotation
    start = 0
    for line in text.split("\n"):
        stop = start + len(line)
        fence = FENCE.match(line)
        if opened is not None and opened[2] and not line.lstrip().startswith(">"):
            yield opened[0], start - 1
            opened = None
        if opened is None:
            opened = _fence_start(line, start, fence)
        elif fence and fence["fence"].startswith(opened[1]) and not fence["info"].strip():
            yield opened[0], stop
            opened = None
        start = stop + 1
    if opened is not None:
        yield opened[0], len(text)


def _fence_start(line: str, start: int, fence: re.Match[str] | None) -> tuple[int, str, bool] | None:
    # Backticks after the fence make it inline code.
    if fence and not (fence["fence"][0] == "`" and "`" in fence["info"]):
        return start, fence["fence"], bool(fence["quote"])
    late = LATE_FENCE.search(line) if "```" in line else None
    return (start + late.start(), late["fence"], False) if late and not fence else None


def _inline_code(text: str) -> Iterator[Span]:
    """Find inline code: from a run of backticks to the next run of the same length on the line."""
    start = 0
    for line in text.split("\n") if "`" in text else ():
        runs = [match.span() for match in BACKTICKS.finditer(line)]
        by_length: dict[int, list[int]] = {}
        for index, (begin, end) in enumerate(runs):
            by_length.setdefault(end - begin, []).append(index)
        index = 0
        while index < len(runs):
            begin, end = runs[index]
            same_length = by_length[end - begin]
            after = bisect_right(same_length, index)
            if after < len(same_length):
                index = same_length[after]
                yield start + begin, start + runs[index][1]
            index += 1
        start += len(line) + 1


def _paired_latex(text: str) -> Iterator[Span]:
    r"""Find `\[...\]`, `\(...\)` and `\begin{x}...\end{x}`."""
    missing: set[str] = set()
    place = 0
    while (place := text.find("\\", place)) >= 0:
        begin = BEGIN.match(text, place)
        close = {"\\[": "\\]", "\\(": "\\)"}.get(text[place : place + 2]) or (begin and f"\\end{{{begin[1]}}}")
        end = text.find(close, place + 2) if close and close not in missing else -1
        if close and end < 0:
            missing.add(close)  # later openings have no end either
        if close and end >= 0:
            yield place, end + len(close)
            place = end + len(close)
        else:
            place += 2


def _finder(pattern: re.Pattern[str], *parts: str) -> Callable[[str], Iterator[Span]]:
    """A search for a pattern, each match of which has one of the parts; looking for these first is much faster."""

    def find(text: str) -> Iterator[Span]:
        if any(part in text for part in parts):
            yield from (match.span() for match in pattern.finditer(text))

    return find


# The order matters: a number in code is code.
FINDERS: tuple[tuple[str, Callable[[str], Iterator[Span]]], ...] = (
    ("fenced code", _fenced),
    ("inline code", _inline_code),
    ("LaTeX", _paired_latex),
    ("LaTeX", _finder(LATEX, "$", "\\")),
    ("URL", _finder(URL, "://", "www.")),
    ("e-mail address", _finder(EMAIL, "@")),
    ("placeholder", _finder(PLACEHOLDER, *"{%<[$")),
    ("number", _finder(NUMBER, "")),
)
