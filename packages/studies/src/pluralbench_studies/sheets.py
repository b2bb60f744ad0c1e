"""Sheets that people fill in: CSV that a spreadsheet opens as text, whatever the text is."""

import re
from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import polars as pl
from pluralbench_runs import atomic_write
from pluralbench_tables import read_csv

from pluralbench_studies.answers import Submission, rows_as_submissions
from pluralbench_studies.errors import AnswersError, AssignmentError
from pluralbench_studies.forms import Form, by_annotator

# What a spreadsheet takes for a formula, also after spaces and line breaks, and the mark that keeps it from doing so.
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|'")


def write_sheets(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write a sheet NAME.csv for each annotator; returns the paths.

    shown: `form.item`, `annotator` and the fields, a row for each item given. Raises `AssignmentError` for files that
    are there already.
    """
    people = by_annotator(shown, form)
    paths = new_files(folder, [f"{name}.csv" for name in people])
    for path, rows in zip(paths, people.values(), strict=True):
        write_sheet(path, rows, form.names)
    return paths


def write_sheet(path: Path, rows: pl.DataFrame, answers: Sequence[str]) -> None:
    """Write rows as a sheet, with an empty column for each of `answers`.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    texts = {column.name: [escape_formula(text) for text in column.cast(pl.String).fill_null("")] for column in rows}
    empty = {name: [""] * rows.height for name in answers}
    # A spreadsheet takes the mark at the beginning to know that this is UTF-8.
    frame = pl.DataFrame(texts | empty, schema=dict.fromkeys([*texts, *empty], pl.String))
    with atomic_write(path) as new:
        frame.write_csv(new, include_bom=True)


def read_rows(path: Path) -> pl.DataFrame:
    """The cells of a sheet as texts, without what guards them; an empty one is "". Raises `AnswersError`."""
    frame = read_csv(path, AnswersError)
    frame = frame.rename({name: normalize("NFKC", name).strip() for name in frame.columns})
    return pl.DataFrame({column.name: [unescape_formula(text or "") for text in column] for column in frame})


def read_sheet(path: Path, form: Form, *, by_assignment: bool = False) -> list[Submission]:
    """The rows of a sheet, ours or a CSV export of Label Studio.

    by_assignment: take a row with an `assigned_to` for the answer of that annotator, whatever its `annotator`. Raises
    `AnswersError`.
    """
    frame = read_rows(path)
    for name in (form.item, "annotator"):
        if name not in frame.columns:
            there = ", ".join(filter(None, frame.columns)) or "none with a name"
            raise AnswersError(f"{path} has no column `{name}`; it has {there}.")
    if not set(form.names) & set(frame.columns):
        raise AnswersError(f"{path} has no column of answers, such as {', '.join(form.names)}.")
    numbered = enumerate(frame.iter_rows(named=True), start=1)
    rows = [(f"{path}, row {number:,}", row) for number, row in numbered]
    return rows_as_submissions(rows, form, by_assignment=by_assignment)


def is_filled(path: Path, answers: Sequence[str]) -> bool:
    """Whether somebody has written something into one of the columns `answers`. Raises `AnswersError`."""
    rows = read_rows(path)
    return any(text.strip() for name in answers if name in rows.columns for text in rows[name])


def new_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """The paths of files to be written to `folder`. Raises `AssignmentError` for one that is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        if path.exists():
            raise AssignmentError(f"{path} is there already; choose another folder, so that no answer is lost.")
    return paths


def escape_formula(text: str) -> str:
    """The text as a spreadsheet may have it: what looks like a formula gets an apostrophe."""
    return f"'{text}" if FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """The text as it was before `escape_formula`."""
    return text.removeprefix("'")
