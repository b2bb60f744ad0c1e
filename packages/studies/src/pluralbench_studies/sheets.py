"""Sheets for annotators: CSV that a spreadsheet opens without treating any text as a formula."""

from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import polars as pl
from pluralbench_runs import write_text
from pluralbench_tables import csv_text, read_csv, unescape_formulas

from pluralbench_studies.errors import StudyError
from pluralbench_studies.forms import Form, split_by_annotator


def write_sheets(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write a sheet NAME.csv for each annotator; for `shown` see `split_by_annotator`.

    Raises:
        StudyError: If one of the files exists.
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
    """Read the cells of a sheet as texts, without escape marks; an empty cell is "". Raises `StudyError`."""
    frame = read_csv(path, StudyError)
    frame = frame.rename({name: normalize("NFKC", name).strip() for name in frame.columns})
    return unescape_formulas(frame).fill_null("")


def check_unfilled(
    paths: Sequence[Path], answers: Sequence[str], fix: str = "choose another folder, so that nothing is lost"
) -> None:
    """Raise `StudyError`, with the fix, if a sheet has an answer in one of the columns `answers`."""
    for path in paths:
        rows = read_rows(path)
        if any(text.strip() for name in answers if name in rows.columns for text in rows[name]):
            raise StudyError(f"{path} has been filled in; {fix}.")


def new_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the paths of files to be written to `folder`. Raises `StudyError` if one exists."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        if path.exists():
            raise StudyError(f"{path} exists already; choose another folder, so that no answer is lost.")
    return paths
