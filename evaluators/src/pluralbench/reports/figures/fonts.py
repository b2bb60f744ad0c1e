"""Fonts for every script: choose installed fonts that have the characters of a text.

matplotlib takes a second to import, so functions import it when they draw.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from unicodedata import east_asian_width

from pluralbench_runs.console import sanitize
from pluralbench_schemas import CATEGORIES, LANGUAGES
from pluralbench_schemas.languages import Language

from pluralbench.reports.figures import Figure

LETTERS = "DejaVu Sans"
GENERIC = "sans-serif"  # fallback of a browser without the other fonts
# Noto has a font of all Han characters for each language that writes them.
HAN = {"Hans": "Noto Sans CJK SC", "Hant": "Noto Sans CJK TC", "Jpan": "Noto Sans CJK JP", "Hang": "Noto Sans CJK KR"}


def unrendered(codes: Iterable[str]) -> list[Language]:
    """Return the languages whose script no installed font has, in the order of their codes."""
    languages = [LANGUAGES[code] for code in sorted({*codes}) if code in LANGUAGES]
    return [language for language in languages if readable(language.autonym) != language.autonym]


def language_label(code: str, between: str = "  ") -> str:
    """Return a language's English name and its own name; the English one only if no font has the script."""
    if code not in LANGUAGES:
        return readable(code)
    name, autonym = LANGUAGES[code].name, LANGUAGES[code].autonym
    return name if unrendered([code]) or autonym.casefold() == name.casefold() else f"{name}{between}{autonym}"


def readable(text: str) -> str:
    """Replace control characters and characters that no installed font has by question marks.

    Some fonts have boxes for control characters, with which an SVG cannot be read.
    """
    missing = {sign for sign in _lacking(text) if _family(sign) is None or not sanitize(sign)}
    return "".join("?" if sign in missing else sign for sign in text)


def families(text: str) -> list[str]:
    """Return the font families for a text's characters, in order of preference; for Han the font of its language."""
    language = next((code for code, one in LANGUAGES.items() if one.autonym in text), "")
    wanted = HAN.get(language.rpartition("_")[2], HAN["Hans"])
    others = (_family(sign, wanted) for sign in sorted(_lacking(text)))
    return [LETTERS, *dict.fromkeys(filter(None, others)), GENERIC]


def set_fonts(figure: Figure) -> None:
    """Give each text of a figure fallback fonts for the characters that matplotlib's own font lacks."""
    from matplotlib.text import Text

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # creates the texts
    for text in figure.findobj(Text):
        if isinstance(text, Text) and _lacking(text.get_text()):
            text.set_text(sanitize(text.get_text()))
            text.set_fontfamily(families(text.get_text()))


def part_labels(names: Iterable[str]) -> dict[str, str]:
    """Return labels for parts of a benchmark; a name that no installed font can show is given in English.

    A name without an English one in `CATEGORIES` becomes "Part" with a number.
    """
    labels: dict[str, str] = {}
    numbered = 0
    for name in dict.fromkeys(names):
        labels[name] = readable(name)
        if labels[name] != name:
            numbered += name not in CATEGORIES
            labels[name] = CATEGORIES.get(name, f"Part {numbered}")
    return labels


def folded(text: str, width: int, lines: int = 3) -> str:
    """Wrap a text between words; a Han character counts as two letters, and a line may end after each.

    A word longer than `width` letters has a line of its own; a text of more lines ends with an ellipsis.
    """
    wrapped = [""]
    for word in filter(None, re.findall(r"[^\s_/-]*[\s_/-]*", " ".join(text.split()))):
        # Han that is longer than a line is split into parts of equal length, so that no part is a single character.
        count = max(1, -(-width_of(word.rstrip()) // width)) if width_of(word) > len(word) else 1
        size = -(-len(word) // count)
        for part in (word[place : place + size] for place in range(0, len(word), size)):
            if width_of((wrapped[-1] + part).rstrip()) <= width or not wrapped[-1]:
                wrapped[-1] += part
            else:
                wrapped.append(part)
    shown = [line.rstrip() for line in wrapped[:lines]]
    if len(wrapped) > lines:
        while width_of(shown[-1]) >= width:
            shown[-1] = shown[-1][:-1]
        shown[-1] += "…"
    return "\n".join(shown)


def width_of(text: str) -> int:
    """Return the width of a text in letters; a Han character counts as two."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


@cache
def _family(sign: str, wanted: str = "") -> str | None:
    """An installed font with this character, `wanted` first; None if there is none."""
    for fonts in (_installed, _newly_installed):
        for name, path, face in sorted(fonts(), key=lambda font: font[0] != wanted):
            if ord(sign) in _characters(path, face):
                return name
    return None


def _lacking(text: str) -> frozenset[str]:
    if text.isascii() and text.isprintable():
        return frozenset()
    available = _of_letters()
    return frozenset(sign for sign in text if sign != "\n" and ord(sign) not in available)


@cache
def _of_letters() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont

    return _characters(str(findfont(FontProperties(family=LETTERS))), 0)


def _installed() -> list[tuple[str, str, int]]:
    """Family, file and face of the installed fonts, the best first; without Last Resort, which has only boxes."""
    from matplotlib.font_manager import fontManager

    fonts = [font for font in fontManager.ttflist if "last resort" not in font.name.lower()]
    fonts.sort(key=lambda f: (not f.name.startswith("Noto Sans"), f.name, f.style != "normal", f.weight != 400))
    return [(font.name, font.fname, font.index) for font in fonts]


@lru_cache(maxsize=1)
def _newly_installed() -> list[tuple[str, str, int]]:
    """The fonts installed after matplotlib cached its list, as `_installed` returns them."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    new = set(findSystemFonts()) - {font.fname for font in fontManager.ttflist}
    for path in sorted(new):
        with suppress(OSError, RuntimeError, ValueError, KeyError):
            fontManager.addfont(path)
    return [font for font in _installed() if font[1] in new]


@cache
def _characters(path: str, face: int) -> frozenset[int]:
    """The code points of a font; empty if it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path, face_index=face).get_charmap())
    except (OSError, RuntimeError, ValueError):
        return frozenset()
