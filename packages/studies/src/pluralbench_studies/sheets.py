"""Sheets for annotators: CSV that a spreadsheet opens without treating any text as a formula."""

from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import polars as pl
from pluralbench_runs import write_text
from pluralbench_tables import csv_text, read_csv, unescape_formulas

from pluralbench_studies.answers import Submission, rows_as_submissions
from pluralbench_studies.errors import AnswersError, AssignmentError
from pluralbench_studies.forms import Form, split_by_annotator


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
    """Write rows as a sheet, with an empty column for each of `answers`."""
    texts = rows.with_columns(pl.all().cast(pl.String).fill_null(""), *(pl.lit("").alias(name) for name in answers))
    write_text(path, "\ufeff" + csv_text(texts))  # by which spreadsheets recognize UTF-8


def read_rows(path: Path) -> pl.DataFrame:
    """Read the cells of a sheet as texts, without escape marks; an empty cell is "". Raises `AnswersError`."""
    frame = read_csv(path, AnswersError)
    frame = frame.rename({name: normalize("NFKC", name).strip() for name in frame.columns})
    return unescape_formulas(frame).fill_null("")


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
    numbered = enumerate(frame.iter_rows(named=True), start=2)  # as a spreadsheet counts, with the header
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
