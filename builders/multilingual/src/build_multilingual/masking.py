"""What must survive a translation as it is: code, LaTeX, URLs, placeholders, numbers.

In the text that is sent each such span is a mark, a number in square brackets, which translators keep and may move;
afterwards each mark has to be there once, and becomes its span again. Every search here takes time in proportion to the
text, whatever stands in it.
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
# As people also write it: behind the words that announce it.
LATE_FENCE = re.compile(r"(?<!`)(?P<fence>`{3,})[\w+#.-]*[ \t]*$")
BACKTICKS = re.compile("`+")
BEGIN = re.compile(r"\\begin\{([A-Za-z]{1,40}\*?)\}")
BRACES = r"\{[^{}\n]{0,400}+\}"
NESTED = rf"\{{(?:[^{{}}\n]|{BRACES}|\{{(?:[^{{}}\n]|{BRACES}){{0,400}}+\}}){{0,400}}+\}}"
LATEX = re.compile(
    r"\$\$(?:[^$]|\$(?!\$))+\$\$"
    # As in pandoc: a dollar before a blank or after one is money, and so is one before a digit.
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
# Digits with separators, and a unit right behind them (10:30pm), or digits alone; what hangs on a word (h2o, COVID-19)
# is the word's.
AMOUNT = r"(?<![\w.])(?<!\w[-–])(?:\.?\d++(?:[.,:/'’–-]\d++)++(?:[A-Za-z°µ%]\w{0,11}+|%)?(?:\.m\.)?|\.?\d++%?)(?!\w)"
# A run of numbers with signs between them is one: nothing in it is to be translated.
NUMBER = re.compile(rf"\[\d{{1,9}}\]|{AMOUNT}(?:[ \t]?[-+*/×÷·=<>≤≥^]{{1,3}}+[ \t]?{AMOUNT})*")

# Translators may write digits in the script of the language, and brackets in its width.
MARK = re.compile(r"[\[［【]\s{0,3}(\d+)\s{0,3}[\]］】]")
LONGEST_MARK = 9  # digits
WORD = re.compile(r"[^\W\d_]+")


class PlaceholderLost(Exception):
    """A translation that does not hold each mark once; the message is the reason."""


@dataclass(frozen=True)
class Masked:
    """A text with marks, and the spans they stand for: (kind, text) by the number in the mark.

    parts: the text between spans, one more than there are spans.
    """

    parts: tuple[str, ...]
    spans: tuple[tuple[str, str], ...]

    @cached_property
    def text(self) -> str:
        """The text with marks, as it is sent."""
        marked = [f"{part}[{number}]" for number, part in enumerate(self.parts[:-1])]
        return "".join(marked) + self.parts[-1]

    @cached_property
    def prose(self) -> str:
        """The text without the spans: what there is to translate."""
        return " ".join(self.parts)

    def words(self, most: int | None = None) -> list[str]:
        """The words of the prose, without digits, or the first `most` of them."""
        return [found[0] for found in islice(WORD.finditer(self.prose), most)]

    @cached_property
    def length(self) -> int:
        """Characters of the prose, without blanks."""
        return len("".join(self.prose.split()))

    def __getstate__(self) -> dict[str, object]:
        """What travels to another process: without the other forms of the text, but with what takes long to count."""
        return {"parts": self.parts, "spans": self.spans, "length": self.length}

    def restore(self, translated: str) -> str:
        """The translation with each span in the place of its mark. Raises `PlaceholderLost`."""
        if not self.spans and not _may_have_marks(translated):
            return translated
        found = Counter(_number(match) for match in MARK.finditer(translated))
        for number, (kind, _) in enumerate(self.spans):
            if found[number] != 1:
                raise PlaceholderLost(f"{'repeated' if found[number] else 'lost'} {kind}")
        if found.total() > len(self.spans):
            raise PlaceholderLost("added a number in brackets")
        return MARK.sub(lambda match: self.spans[_number(match)][1], translated)


def _may_have_marks(text: str) -> bool:
    return "[" in text or "［" in text or "【" in text


def _number(match: re.Match[str]) -> int:
    return int(match[1]) if len(match[1]) <= LONGEST_MARK else -1


def mask(text: str) -> Masked:
    """Find the spans of a text that must survive as they are."""
    stretches: list[tuple[str, str]] = [("", text)]  # (kind, text), no kind where nothing is found yet
    for kind, find in FINDERS:
        stretches = [new for old in stretches for new in ([old] if old[0] else _split(old[1], kind, find(old[1])))]
    parts, spans = [""], []
    for kind, stretch in stretches:
        if kind:
            spans.append((kind, stretch))
            parts.append("")
        else:
            parts[-1] += stretch
    return Masked(tuple(parts), tuple(spans))


def without_marks(translated: str) -> str:
    """A translation without its marks: what was translated."""
    return MARK.sub(" ", translated) if _may_have_marks(translated) else translated


def has_letters(text: str) -> bool:
    """Whether there is anything to translate."""
    return WORD.search(text) is not None


def _split(text: str, kind: str, spans: Iterator[Span]) -> Iterator[tuple[str, str]]:
    end = 0
    for start, stop in spans:
        yield "", text[end:start]
        yield kind, text[start:stop]
        end = stop
    yield "", text[end:]


def _fenced(text: str) -> Iterator[Span]:
    """Fenced code as in CommonMark: up to a fence at least as long, the end of a quotation, or the end of the text."""
    opened: tuple[int, str, bool] | None = None  # where, with which fence, whether in a quotation
    start = 0
    for line in text.split("\n"):
        stop = start + len(line)
        fence = FENCE.match(line)
        if opened is not None and opened[2] and not line.lstrip().startswith(">"):
            yield opened[0], start - 1
            opened = None
        if opened is None:
            opened = _opening(line, start, fence)
        elif fence and fence["fence"].startswith(opened[1]) and not fence["info"].strip():
            yield opened[0], stop
            opened = None
        start = stop + 1
    if opened is not None:
        yield opened[0], len(text)


def _opening(line: str, start: int, fence: re.Match[str] | None) -> tuple[int, str, bool] | None:
    # Backticks after the fence make it inline code.
    if fence and not (fence["fence"][0] == "`" and "`" in fence["info"]):
        return start, fence["fence"], bool(fence["quote"])
    late = LATE_FENCE.search(line) if "```" in line else None
    return (start + late.start(), late["fence"], False) if late and not fence else None


def _inline_code(text: str) -> Iterator[Span]:
    """Backticks up to the next run of as many on the same line."""
    start = 0
    for line in text.split("\n"):
        runs = [match.span() for match in BACKTICKS.finditer(line)]
        places: dict[int, list[int]] = {}
        for place, (begin, end) in enumerate(runs):
            places.setdefault(end - begin, []).append(place)
        place = 0
        while place < len(runs):
            begin, end = runs[place]
            same = places[end - begin]
            after = bisect_right(same, place)
            if after < len(same):
                place = same[after]
                yield start + begin, start + runs[place][1]
            place += 1
        start += len(line) + 1


def _paired_latex(text: str) -> Iterator[Span]:
    r"""`\[...\]`, `\(...\)` and `\begin{x}...\end{x}`."""
    missing: set[str] = set()
    place = 0
    while (place := text.find("\\", place)) >= 0:
        begin = BEGIN.match(text, place)
        close = {"\\[": "\\]", "\\(": "\\)"}.get(text[place : place + 2]) or (begin and f"\\end{{{begin[1]}}}")
        end = text.find(close, place + 2) if close and close not in missing else -1
        if close and end < 0:
            missing.add(close)  # nor is there one for any later opening
        if close and end >= 0:
            yield place, end + len(close)
            place = end + len(close)
        else:
            place += 2


def _by(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (match.span() for match in pattern.finditer(text))


# In this order: what comes first owns its text, so a number in code is code.
FINDERS: tuple[tuple[str, Callable[[str], Iterator[Span]]], ...] = (
    ("fenced code", _fenced),
    ("inline code", _inline_code),
    ("LaTeX", _paired_latex),
    ("LaTeX", _by(LATEX)),
    ("URL", _by(URL)),
    ("e-mail address", _by(EMAIL)),
    ("placeholder", _by(PLACEHOLDER)),
    ("number", _by(NUMBER)),
)
