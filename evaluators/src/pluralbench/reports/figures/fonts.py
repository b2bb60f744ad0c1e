"""Letters for every script: which installed font has the characters of a text.

matplotlib takes a second to import, so it is imported where something is drawn.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from unicodedata import east_asian_width

from pluralbench_schemas import CATEGORIES, LANGUAGES, language_of

from pluralbench.reports.figures import Figure

LETTERS = "DejaVu Sans"
GENERIC = "sans-serif"  # what a browser takes that has none of the others
# One font family of Noto has all Han characters four times, each as one language writes them.
HAN = {"Hans": "Noto Sans CJK SC", "Hant": "Noto Sans CJK TC", "Jpan": "Noto Sans CJK JP", "Hang": "Noto Sans CJK KR"}


def unrendered(codes: Iterable[str]) -> list[str]:
    """The English names of the languages whose own script no installed font has, in the order of their codes."""
    known = [LANGUAGES[code] for code in sorted({*codes}) if code in LANGUAGES]
    return [one.name for one in known if readable(one.autonym) != one.autonym]


def language_label(code: str, between: str = "  ") -> str:
    """A language's name in English and in itself; in English alone where no font has its letters."""
    if code not in LANGUAGES:
        return readable(code)
    name, autonym = LANGUAGES[code].name, LANGUAGES[code].autonym
    return name if unrendered([code]) or autonym.casefold() == name.casefold() else f"{name}{between}{autonym}"


def short_name(code: str) -> str:
    """German for "de"; Chinese for "zh", whatever the script; the code itself where it is not known."""
    language = language_of(code)
    return code if language is None else language.short_name


def readable(text: str) -> str:
    """Any text; a character that no installed font has becomes a question mark, since a box would say less."""
    gone = {sign for sign in _lacking(text) if _family(sign) is None}
    return "".join("?" if sign in gone else sign for sign in text)


def families(text: str) -> list[str]:
    """The font families that have a text's characters, the one to prefer first; of Han ones that of its language."""
    language = next((code for code, one in LANGUAGES.items() if one.autonym in text), "")
    wanted = HAN.get(language.rpartition("_")[2], HAN["Hans"])
    found = (_family(sign, wanted) for sign in sorted(_lacking(text)))
    return [LETTERS, *dict.fromkeys(filter(None, found)), GENERIC]


def set_fonts(figure: Figure) -> None:
    """Let each text of a figure that needs more than matplotlib's own letters fall back to fonts that have them."""
    from matplotlib.text import Text  # noqa: PLC0415 - a second that `--help` saves

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # which have no texts before they are asked for
    for text in figure.findobj(Text):
        if isinstance(text, Text) and _lacking(text.get_text()):
            text.set_fontfamily(families(text.get_text()))


def part_labels(names: Iterable[str]) -> dict[str, str]:
    """Names of parts of a benchmark; those that no font here has in English.

    One that has no English name in `CATEGORIES` is "Part" and its number among such, in their order.
    """
    labels: dict[str, str] = {}
    numbered = 0
    for name in dict.fromkeys(names):
        labels[name] = readable(name)
        if labels[name] != name:
            numbered += name not in CATEGORIES
            labels[name] = CATEGORIES.get(name, f"Part {numbered}")
    return labels


def folded(text: str, width: int, lines: int = 3, below: str = "") -> str:
    """A text on some lines of so many letters, and what is below; a Han character is as wide as two letters."""
    found = [""]
    for word in filter(None, re.findall(r"[^\s_/-]*[\s_/-]*", " ".join(text.split()))):
        # A word that is too long for a line is broken into parts of one length, so that none has a letter alone.
        count = max(1, -(-_cells(word.rstrip()) // width))
        size = -(-len(word) // count)
        for part in (word[place : place + size] for place in range(0, len(word), size)):
            if _cells((found[-1] + part).rstrip()) <= width or not found[-1]:
                found[-1] += part
            else:
                found.append(part)
    shown = [line.rstrip() for line in found[:lines]]
    if len(found) > lines:
        while _cells(shown[-1]) >= width:
            shown[-1] = shown[-1][:-1]
        shown[-1] += "…"
    return "\n".join([*shown, *filter(None, [below])])


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _family(sign: str, wanted: str = "") -> str | None:
    """The font that has a character which matplotlib's own lacks, None where none has."""
    for fonts in (_installed, _newly_installed):
        for name, path, face in sorted(fonts(), key=lambda font: font[0] != wanted):
            if ord(sign) in _characters(path, face):
                return name
    return None


def _lacking(text: str) -> frozenset[str]:
    """The characters of a text that matplotlib's own letters lack."""
    if text.isascii() and text.isprintable():
        return frozenset()
    from matplotlib.font_manager import FontProperties, findfont  # noqa: PLC0415 - a second that `--help` saves

    known = _characters(str(findfont(FontProperties(family=LETTERS))), 0)
    return frozenset(sign for sign in text if sign != "\n" and ord(sign) not in known)


def _installed() -> list[tuple[str, str, int]]:
    """Family, file and face of the fonts to choose from, the best first. Last Resort has boxes for everything."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415 - a second that `--help` saves

    found = [font for font in fontManager.ttflist if "last resort" not in font.name.lower()]
    found.sort(key=lambda f: (not f.name.startswith("Noto Sans"), f.name, f.style != "normal", f.weight != 400))
    return [(font.name, font.fname, font.index) for font in found]


@lru_cache(maxsize=1)
def _newly_installed() -> list[tuple[str, str, int]]:
    """As above, with the fonts that came after matplotlib made its list, which it keeps from one run to the next."""
    from matplotlib.font_manager import findSystemFonts, fontManager  # noqa: PLC0415 - a second that `--help` saves

    new = set(findSystemFonts()) - {font.fname for font in fontManager.ttflist}
    for path in sorted(new):
        with suppress(OSError, RuntimeError, ValueError, KeyError):
            fontManager.addfont(path)
    return [font for font in _installed() if font[1] in new]


@cache
def _characters(path: str, face: int) -> frozenset[int]:
    """The characters of a font, by their numbers; none of one that cannot be read."""
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415 - a second that `--help` saves

    try:
        return frozenset(FT2Font(path, face_index=face).get_charmap())
    except (OSError, RuntimeError, ValueError):
        return frozenset()
