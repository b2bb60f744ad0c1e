"""CSV that spreadsheets may open: no text is a formula, and the texts come back as they were."""

import re

import polars as pl

# Texts that a spreadsheet treats as a formula, also after spaces and line breaks, or that begin with the escape mark.
PATTERN = r"(?:[\s\x1c-\x1f]*[=+\-@＝＋－＠]|')"
FORMULA, ESCAPED = re.compile(PATTERN), re.compile(f"'{PATTERN}")
TEXTS = pl.col(pl.String)


def csv_text(frame: pl.DataFrame) -> str:
    """Format a frame as CSV. Texts that a spreadsheet would treat as a formula get an apostrophe in front."""
    texts = pl.when(TEXTS.str.contains(f"^{PATTERN}")).then("'" + TEXTS).otherwise(TEXTS)
    return frame.with_columns(texts.name.keep()).rename(escape_formula).write_csv()


def unescape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the texts as they were before `csv_text`."""
    texts = pl.when(TEXTS.str.contains(f"^'{PATTERN}")).then(TEXTS.str.slice(1)).otherwise(TEXTS)
    return frame.with_columns(texts.name.keep()).rename(lambda name: name[1:] if ESCAPED.match(name) else name)


def escape_formula(text: str) -> str:
    """Return a text with an apostrophe in front if a spreadsheet would treat it as a formula."""
    return f"'{text}" if FORMULA.match(text) else text
