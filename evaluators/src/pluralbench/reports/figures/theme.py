"""Colors of ink and paper in figures, which follow a light or dark theme.

A figure is drawn in the light colors. The style sheet of an SVG file replaces those of ink and paper in the dark, and a
page replaces them by variables of its own style sheet.
"""

from typing import Any, NamedTuple

from pluralbench.reports.figures.fonts import GENERIC, LETTERS


class Role(NamedTuple):
    """A color that follows the theme, and its property in the pages' style sheet."""

    light: str
    dark: str
    variable: str


INK = "#1d2126"  # texts, axes, means
SOFT = "#565d66"  # notes, reference lines, bars without a series
LINE = "#d9dde2"  # grids
BAND = "#f4f5f7"  # every other row
PAPER = "#fefefe"  # inside of hollow dots; not pure white, which is the color of numbers on dark cells
ROLES = (
    Role(INK, "#e4e6ea", "--ink"),
    Role(SOFT, "#a5adb8", "--soft"),
    Role(LINE, "#3f454e", "--line"),
    Role(BAND, "#1e2127", "--band"),
    Role(PAPER, "#16181c", "--paper"),
)
SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "font.family": [LETTERS, GENERIC],
    "font.sans-serif": [LETTERS, "Verdana", "Helvetica", "Arial"],
    "font.size": 8,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text that can be searched, copied and read aloud
    "svg.hashsalt": "pluralbench",
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": INK,
    "ytick.color": INK,
}


def with_dark_style(svg: str) -> str:
    """Add a style sheet to an SVG file that changes ink and paper where the reader prefers dark pages."""
    rules = "".join(
        f'[style*="{what}: {role.light}"]{{{what}:{role.dark} !important}}'
        for role in ROLES
        for what in ("fill", "stroke")
    )
    before, tag, after = svg.partition("<defs>")
    return f"{before}<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>\n {tag}{after}"


def with_variables(svg: str) -> str:
    """Replace ink and paper in an SVG file by the variables of a page's style sheet."""
    for role in ROLES:
        svg = svg.replace(f": {role.light}", f": var({role.variable})")
    return svg
