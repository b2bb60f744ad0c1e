"""Sheets for annotators: CSV that a spreadsheet opens without treating any text as a formula."""

import re
from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import polars as pl
from pluralbench_runs import atomic_write
from pluralbench_tables import read_csv

from pluralbench_studies.answers import Submission, rows_as_submissions
from pluralbench_studies.errors import AnswersError, AssignmentError
from pluralbench_studies.forms import Form, split_by_annotator

# Texts that a spreadsheet treats as a formula, also after spaces and line breaks, or that begin with the escape mark.
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|'")


def write_sheets(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write a sheet NAME.csv for each annotator.

    Args:
        folder: The folder to write to.
        shown: `form.item`, `annotator` and the fields, a row for each assigned item.
        form: The form.

    Returns:
        The paths.

    Raises:
        AssignmentError: If one of the files exists.
    """
    by_annotator = split_by_annotator(shown, form)
    paths = new_files(folder, [f"{name}.csv" for name in by_annotator])
    for path, rows in zip(paths, by_annotator.values(), strict=True):
        write_sheet(path, rows, form.names)
    return paths


def write_sheet(path: Path, rows: pl.DataFrame, answers: Sequence[str]) -> None:
    """Write rows as a sheet, with an empty column for each of `answers`.

    Texts that a spreadsheet would treat as a formula get an apostrophe in front.
    """
    texts = {column.name: [escape_formula(text) for text in column.cast(pl.String).fill_null("")] for column in rows}
    empty = {name: [""] * rows.height for name in answers}
    # Spreadsheets recognize UTF-8 by the byte order mark.
    frame = pl.DataFrame(texts | empty, schema=dict.fromkeys([*texts, *empty], pl.String))
    with atomic_write(path) as new:
        frame.write_csv(new, include_bom=True)


def read_rows(path: Path) -> pl.DataFrame:
    """Read the cells of a sheet as texts, without escape marks; an empty cell is "". Raises `AnswersError`."""
    frame = read_csv(path, AnswersError)
    frame = frame.rename({name: normalize("NFKC", name).strip() for name in frame.columns})
    return pl.DataFrame({column.name: [unescape_formula(text or "") for text in column] for column in frame})


def read_sheet(path: Path, form: Form, *, by_assignment: bool = False) -> list[Submission]:
    """Read the submissions of a sheet, or of a CSV export of Label Studio.

    Args:
        path: The file.
        form: The form.
        by_assignment: Whether `assigned_to` overrides `annotator`.

    Raises:
        AnswersError: If the file cannot be read, or has no column of ids, annotators or answers.
    """
    frame = read_rows(path)
    for name in (form.item, "annotator"):
        if name not in frame.columns:
            columns = ", ".join(filter(None, frame.columns)) or "none with a name"
            raise AnswersError(f"{path} has no column `{name}`; it has {columns}.")
    if not set(form.names) & set(frame.columns):
        raise AnswersError(f"{path} has no column of answers, such as {', '.join(form.names)}.")
    numbered = enumerate(frame.iter_rows(named=True), start=1)
    rows = [(f"{path}, row {number:,}", row) for number, row in numbered]
    return rows_as_submissions(rows, form, by_assignment=by_assignment)


def is_filled(path: Path, answers: Sequence[str]) -> bool:
    """Return whether one of the columns `answers` has an answer. Raises `AnswersError`."""
    rows = read_rows(path)
    return any(text.strip() for name in answers if name in rows.columns for text in rows[name])


def new_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the paths of files to be written to `folder`. Raises `AssignmentError` if one exists."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        if path.exists():
            raise AssignmentError(f"{path} exists already; choose another folder, so that no answer is lost.")
    return paths


def escape_formula(text: str) -> str:
    """Return the text as a spreadsheet may have it: what looks like a formula gets an apostrophe in front."""
    return f"'{text}" if FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text as it was before `escape_formula`."""
    return text.removeprefix("'")
