"""What must survive a translation as it is: code, LaTeX, URLs, placeholders, numbers.

In the text that is sent each such span is a mark, a number in square brackets, which translators keep and may move;
afterwards each mark has to be there once, and becomes its span again.
"""

import re
from dataclasses import dataclass
from functools import cached_property

NUMBER = r"(?<![\w.])\.?\d+(?:[.,:/'’–-]\d+)*%?(?!\w)"

# In this order: what comes first owns its text, so a number in code is code.
KINDS = {
    "fenced code": r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n(?:.*?\n)?[ \t]*(?P=fence)[ \t]*$",
    "inline code": r"(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)",
    "LaTeX": r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\\begin\{(?P<environment>[\w*]+)\}.*?\\end\{(?P=environment)\}"
    # As in pandoc: a dollar before a blank or after one is money, and so is one before a digit.
    r"|(?<![\\$])\$(?=\S)[^$\n]*?(?<=\S)\$(?![\d$])"
    r"|\\[A-Za-z]+(?:\{[^{}\n]*\})+",
    "URL": r"(?:https?|ftp)://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]|www\.[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]",
    "e-mail address": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "placeholder": r"\$?\{\{?[^{}\n]*\}?\}|%\(\w+\)[sdif]|(?<![\w%])%(?:\.\d+)?[sdif](?!\w)|</?[A-Za-z][^<>\n]*>"
    r"|\[[A-Z][A-Z0-9_]+\]|(?<!\w)\$[A-Za-z_]\w*",
    # A run of numbers with signs between them is one: nothing in it is to be translated.
    "number": rf"\[\d+\]|{NUMBER}(?:[ \t]?[-+*/×÷·=<>≤≥^]+[ \t]?{NUMBER})*",
}
SPAN = re.compile(
    "|".join(f"(?P<k{n}>{pattern})" for n, pattern in enumerate(KINDS.values())), re.DOTALL | re.MULTILINE
)
# Translators may write digits in the script of the language, and brackets in its width.
MARK = re.compile(r"[\[［【]\s*(\d+)\s*[\]］】]")
LETTER = re.compile(r"[^\W\d_]")


class Lost(Exception):
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

    def restore(self, translated: str) -> str:
        """The translation with each span in the place of its mark. Raises `Lost`."""
        found = [int(match[1]) for match in MARK.finditer(translated)]
        for number, (kind, _) in enumerate(self.spans):
            if found.count(number) != 1:
                raise Lost(f"{'lost' if number not in found else 'repeated'} {kind}")
        if len(found) > len(self.spans):
            raise Lost("added a number in brackets")
        return MARK.sub(lambda match: self.spans[int(match[1])][1], translated)


def mask(text: str) -> Masked:
    """Find the spans of a text that must survive as they are."""
    parts, spans, end = [], [], 0
    kinds = list(KINDS)
    for match in SPAN.finditer(text):
        parts.append(text[end : match.start()])
        kind = next(kinds[n] for n in range(len(kinds)) if match[f"k{n}"] is not None)
        spans.append((kind, match[0]))
        end = match.end()
    return Masked((*parts, text[end:]), tuple(spans))


def without_marks(translated: str) -> str:
    """A translation without its marks: what was translated."""
    return MARK.sub(" ", translated)


def has_letters(text: str) -> bool:
    """Whether there is anything to translate."""
    return LETTER.search(text) is not None
