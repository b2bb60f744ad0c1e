"""Letters for every script: which installed font has the characters of a text.

matplotlib takes a second to import, so it is imported where something is drawn.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple
from unicodedata import east_asian_width

from pluralbench_schemas import CATEGORIES, LANGUAGES, language_of

LETTERS = "DejaVu Sans"
GENERIC = "sans-serif"  # what a browser takes that has none of the others
# One font family of Noto has all Han characters four times, each as one language writes them.
HAN = {"Hans": "Noto Sans CJK SC", "Hant": "Noto Sans CJK TC", "Jpan": "Noto Sans CJK JP", "Hang": "Noto Sans CJK KR"}


class Label(NamedTuple):
    """A text, and the font families that have its characters, first the one to prefer."""

    text: str
    families: list[str]


def find_fonts(codes: Iterable[str]) -> dict[str, str | None]:
    """For each known language, the font for its own name: "" where matplotlib's own has it, None where none has."""
    known = [LANGUAGES[code] for code in dict.fromkeys(codes) if code in LANGUAGES]
    return {one.code: _family(one.autonym, HAN.get(one.code.rpartition("_")[2], "")) for one in known}


def unrendered(codes: Iterable[str]) -> list[str]:
    """The English names of the languages whose own script no installed font has, in the order of their codes."""
    return [LANGUAGES[code].name for code, family in sorted(find_fonts(codes).items()) if family is None]


def language_label(code: str, fonts: Mapping[str, str | None], between: str = "  ") -> Label:
    """A language's name in English and in itself; in English alone where no font has its letters."""
    if code not in LANGUAGES:
        return readable(code)
    name, autonym, family = LANGUAGES[code].name, LANGUAGES[code].autonym, fonts.get(code)
    if family is None or autonym.casefold() == name.casefold():
        return plain(name)
    return Label(f"{name}{between}{autonym}", [LETTERS, *filter(None, [family]), GENERIC])


def short_name(code: str) -> str:
    """German for "de"; Chinese for "zh", whatever the script; the code itself where it is not known."""
    language = language_of(code)
    return code if language is None else language.short_name


def plain(text: str) -> Label:
    """A text of ours, in the letters that matplotlib brings."""
    return Label(text, [LETTERS, GENERIC])


def readable(text: str, wanted: str = "") -> Label:
    """Any text; a character that no installed font has becomes a question mark, since a box would say less."""
    lacking = _lacking(text)
    families = {sign: _family(sign, wanted) for sign in sorted(lacking)}
    shown = "".join("?" if families.get(sign, "") is None else sign for sign in text)
    return Label(shown, [LETTERS, *dict.fromkeys(family for family in families.values() if family), GENERIC])


def part_labels(names: Iterable[str]) -> dict[str, Label]:
    """Names of parts of a benchmark, Han characters as in China; those that no font here has in English.

    One that has no English name in `CATEGORIES` is "Part" and its number among such, in their order.
    """
    labels: dict[str, Label] = {}
    numbered = 0
    for name in dict.fromkeys(names):
        found = readable(name, HAN["Hans"])
        if found.text != name and _lacking(name):
            numbered += name not in CATEGORIES
            found = plain(CATEGORIES.get(name, f"Part {numbered}"))
        labels[name] = found
    return labels


def folded(label: Label, width: int, lines: int = 3, below: str = "") -> Label:
    """A label on some lines of so many letters, and what is below; a Han character is as wide as two letters."""
    found = [""]
    for word in filter(None, re.findall(r"[^\s_/-]*[\s_/-]*", " ".join(label.text.split()))):
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
    return Label("\n".join([*shown, *filter(None, [below])]), label.families)


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _family(text: str, wanted: str = "") -> str | None:
    lacking = _lacking(text)
    if not lacking:
        return ""
    for fonts in (_installed, _newly_installed):
        for name, path, face in sorted(fonts(), key=lambda font: font[0] != wanted):
            if _has(path, face, lacking):
                return name
    return None


def _lacking(text: str) -> frozenset[str]:
    from matplotlib.font_manager import FontProperties, findfont  # noqa: PLC0415 - a second that `--help` saves

    path = str(findfont(FontProperties(family=LETTERS)))
    return frozenset(sign for sign in text if not _has(path, 0, frozenset(sign)))


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


@lru_cache(maxsize=10_000)
def _has(path: str, face: int, signs: frozenset[str]) -> bool:
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415 - a second that `--help` saves

    try:
        font = FT2Font(path, face_index=face)
    except (OSError, RuntimeError, ValueError):
        return False
    return all(font.get_char_index(ord(sign)) for sign in signs)
