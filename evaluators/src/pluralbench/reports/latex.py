"""Tables of reports in LaTeX, each a float with a caption and notes that is as wide as the text at most."""

import re
from collections.abc import Iterator, Sequence

from pluralbench_measures.bootstrap import CONFIDENCE
from rich.cells import cell_len

from pluralbench.reports.figures.fonts import folded
from pluralbench.reports.tables import Table, marks_in
from pluralbench.results.numbers import DAGGER, DASH

PACKAGES = "% Needs \\usepackage{booktabs,graphicx}."
SCRIPTS = " Names in other scripts need LuaLaTeX or XeLaTeX, and a font that has them."
COLUMN, PAGE = 50, 125  # letters that a column and a page have room for, the latter at no less than half the size
BETWEEN = 2.4  # letters between columns
ROWS = 36  # of one line on a page
HEAD, NAME = 20, 44  # letters in a line of a heading and of a name
INTERVAL = re.compile(r"\d \[[^\[\]]+\]")
SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"}
    | {">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": r"\ensuremath{-}"}
    | {"≥": r"\ensuremath{\geq}", "≤": r"\ensuremath{\leq}", "→": r"\ensuremath{\rightarrow}"}
    | {"ρ": r"\ensuremath{\rho}", "τ": r"\ensuremath{\tau}", "κ": r"\ensuremath{\kappa}", "²": r"\ensuremath{^2}"}
)
LATIN = 0x180  # first character beyond those that every LaTeX has
TEXT_SIGNS = "–—‘’“”†…×·\N{NO-BREAK SPACE}"
Grid = Sequence[Sequence[str]]
"""The rows of a table; the first has the headings."""


def in_latex(tables: Sequence[tuple[Table, Grid, int]], notes: Sequence[str]) -> str:
    """Write tables in LaTeX.

    A table that is too wide is turned on its side or scaled down to the width of the text.

    Args:
        tables: Each table with its texts and the number of its first columns that have names.
        notes: Sentences on all tables. They are below the table if there is a single one, else below the last.
    """
    floats: list[str] = []
    alone = len(tables) == 1
    for table, texts, labels in tables:
        floats += _floats(table, texts, labels, notes if alone else ())
    shared = [] if alone or not notes else [f"{{\\footnotesize\\noindent {_sentences(notes)}\\par}}"]
    body = "\n\n".join([*floats, *shared])
    foreign = any(ord(sign) >= LATIN and sign not in TEXT_SIGNS for sign in body)
    return f"{PACKAGES}{SCRIPTS * foreign}\n\n{body}"


def _sentences(notes: Sequence[str]) -> str:
    return _escaped(" ".join(note if note.endswith((".", "!", "?")) else f"{note}." for note in notes))


def _floats(table: Table, texts: Grid, labels: int, notes: Sequence[str]) -> Iterator[str]:
    """A table as one or more floats, each of which fits a page; one that is too wide is turned on its side."""
    quiet = next((at for at, row in enumerate(table.rows) if row.quiet), 0)
    upright, texts = texts, _folded(texts)
    if labels == 1 and len(texts) < len(texts[0]) and _width(texts) > PAGE:
        texts, quiet = _folded(list(zip(*upright, strict=True))), 0
    most = max(1, ROWS // max((1 + cell.count("\n") for row in texts[1:] for cell in row), default=1))
    places = range(0, max(len(texts) - 1, 1), most)
    for number, first in enumerate(places, 1):
        part = f", part {number} of {len(places)}" * (len(places) > 1)
        rows = texts[first + 1 : first + 1 + most]
        cells = [cell for row in rows for cell in row]
        marks = [f"Brackets: {100 * CONFIDENCE:g} % confidence intervals."] if any(map(INTERVAL.search, cells)) else []
        marks += marks_in([table]) if any(cell.endswith(DAGGER) for cell in cells) else []
        marks += [f"{DASH} No value."] if DASH in cells else []
        marks += ["Below the line: baselines on the same items."] if 0 < quiet - first < len(rows) else []
        yield _float(f"{table.title}{part}", [texts[0], *rows], labels, quiet - first, [*marks, *notes])


def _folded(texts: Grid) -> Grid:
    return [[folded(cell, NAME if number else HEAD, lines=9) for cell in row] for number, row in enumerate(texts)]


def _width(texts: Grid) -> float:
    columns = zip(*texts, strict=True)
    return sum(BETWEEN + max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns)


def _float(title: str, texts: Grid, labels: int, quiet: int, notes: Sequence[str]) -> str:
    """A float.

    quiet: Number of the first row below a rule; none if it is not positive.
    """
    environment = "table" if _width(texts) <= COLUMN else "table*"
    head, *rows = [" " + _row(row, labels) for row in texts]
    if 0 < quiet < len(rows):
        rows.insert(quiet, "\\midrule")
    below = [f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {_sentences(notes)}}}"] if notes else []
    lines = [
        f"\\begin{{{environment}}}[tp]",
        "\\centering",
        f"\\caption{{{_escaped(title)}.}}",
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{'l' * labels}{'r' * (len(texts[0]) - labels)}}}",
        "\\toprule",
        head,
        "\\midrule",
        *rows,
        "\\bottomrule",
        "\\end{tabular}}",
        *below,
        f"\\end{{{environment}}}",
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str], labels: int) -> str:
    """A row; LaTeX would read a first bracket or asterisk as an argument of the preceding end of a row."""
    shown = []
    for number, cell in enumerate(cells):
        lines = [("{}" if line.startswith(("[", "*")) else "") + _escaped(line) for line in cell.split("\n")]
        side = "l" if number < labels else "r"
        text = r"\\".join(lines)
        shown.append(text if len(lines) == 1 else f"\\shortstack[{side}]{{{text}}}")
    return f"{' & '.join(shown)} \\\\"


def _escaped(text: str) -> str:
    """A text without characters that LaTeX reads as commands or ligatures."""
    return text.translate(SIGNS).replace("--", "-{}-")
