"""The folder of a study.

    study.toml      settings of the study
    assigned.csv    assignment of items to annotators
    key.csv         what each item stands for; annotators must not see it
    sheets/         a sheet NAME.csv for each annotator, and guide.md
    label_studio/   the same for Label Studio

Annotators get the files of `sheets` or of `label_studio`. Returned sheets may be anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any, Generic, TypeVar

import polars as pl
from pluralbench_runs import digest, output_directory, plural, read_recipe, write_recipe, write_text
from pluralbench_runs.study_options import ReadOptions, StudyRecipe
from pluralbench_tables import csv_text, read_csv, unescape_formulas

from pluralbench_studies.agreement_statistics import first_answers
from pluralbench_studies.assignment import ASSIGNED, assign
from pluralbench_studies.errors import StudyError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import write_label_studio
from pluralbench_studies.reading import MISSING, Answers, read_answers
from pluralbench_studies.sheets import check_unfilled, write_sheets

SETTINGS, ASSIGNED_FILE, KEY_FILE = "study.toml", "assigned.csv", "key.csv"
SHEETS, LABEL_STUDIO, GUIDE = "sheets", "label_studio", "guide.md"

R = TypeVar("R", bound=StudyRecipe)


@dataclass(frozen=True)
class Study(Generic[R]):
    """A study that was written to a folder, with its assignment (columns of `ASSIGNED`).

    `key` says what each item stands for: `item` and further columns, all as text.
    """

    folder: Path
    settings: R
    assigned: pl.DataFrame
    key: pl.DataFrame


def item_ids(frame: pl.DataFrame, columns: Sequence[str], *secret: Any) -> pl.DataFrame:
    """Add the column `item`: ids that do not reveal what an item is, unique to a study by its seed and digest."""
    ids = [digest([*secret, *row])[:12] for row in frame.select(columns).iter_rows()]
    return frame.with_columns(item=pl.Series(ids, dtype=pl.String))


def write_study(
    folder: Path,
    settings: StudyRecipe,
    items: pl.DataFrame,
    key: Sequence[str],
    form: Form,
    guide: Path,
    *,
    assigned: pl.DataFrame | None = None,
    fresh: bool = False,
) -> str:
    """Write a study to a folder. If the folder has the same study already, it is left as it is.

    Args:
        folder: The folder.
        settings: Settings of the study.
        items: `item`, the form's fields, and the columns of the key; a row for each item. `group` is optional (see
            `assign`).
        key: Columns of `items` that say what an item stands for, which annotators do not see.
        form: The form.
        guide: Instructions for annotators, in Markdown.
        assigned: Assignment of items to annotators (columns of `ASSIGNED`). Default: `assign`.
        fresh: Whether to replace another study.

    Returns:
        What the folder has, for the terminal.

    Raises:
        OutputError: If the folder has other files, or a study with other settings.
        StudyError: If the items cannot be assigned, or a sheet of the study to replace has been filled in.
    """
    if fresh:
        check_unfilled(sorted((folder / SHEETS).glob("*.csv")), form.names)
    if assigned is None:
        each = settings.annotators_per_item
        assigned = assign(items, settings.annotators, seed=settings.seed, annotators_per_item=each)
    with output_directory(folder, settings, recipe_file=SETTINGS, fresh=fresh) as output:
        new = fresh or not (folder / SETTINGS).exists()
        if new:
            staged = output.staging()
            shown = assigned.join(items.select("item", *form.fields), on="item", how="left", maintain_order="left")
            write_sheets(staged / SHEETS, shown, form)
            write_label_studio(staged / LABEL_STUDIO, shown, form)
            for name in (SHEETS, LABEL_STUDIO):
                copyfile(guide, staged / name / GUIDE)
            write_text(staged / ASSIGNED_FILE, csv_text(assigned))
            write_text(staged / KEY_FILE, csv_text(items.select("item", *key)))
            completed = settings.model_copy(update={"key_digest": _digest(_read(staged / KEY_FILE))})
            write_recipe(completed, staged / SETTINGS)
            output.publish(staged)
    return f"""\
{folder}: {"sheets written" if new else "the same study exists already and is left as it is"}
  {plural(items.height, "item")}, {plural(assigned.height, "assignment")}
  {folder / SHEETS}: a CSV for each of {", ".join(sorted(settings.annotators))}, and {GUIDE} for all
  {folder / LABEL_STUDIO}: the same for Label Studio; use one or the other
  {folder / KEY_FILE}: {", ".join(key)} of each item; do not show it to annotators"""


def read_study(
    folder: Path, settings: type[R], form: Form, files: Sequence[Path] | None, options: ReadOptions
) -> tuple[Study[R], Answers]:
    """Read the study that `write_study` wrote to a folder, and its answers (see `read_answers`).

    Without `files` the sheets in the study's folder are read. Problems of kind `missing` are not among those of the
    answers: see `annotator_progress`.

    Raises:
        StudyError: If the folder has no study, its key has been changed (reordered rows are no change), a file cannot
            be read, or there is no answer.
    """
    for name in (SETTINGS, ASSIGNED_FILE, KEY_FILE):
        if not (folder / name).is_file():
            raise StudyError(
                f"{folder} is not a study: it has no {name}; give the folder that the sheets were written to."
            )
    recipe = read_recipe(settings, folder / SETTINGS)
    assigned, key = (_read(folder / name) for name in (ASSIGNED_FILE, KEY_FILE))
    unchanged = {ASSIGNED_FILE: assigned.columns == ASSIGNED.names(), KEY_FILE: _digest(key) == recipe.key_digest}
    for name, is_unchanged in unchanged.items():
        if not is_unchanged:
            raise StudyError(f"{folder / name} has been changed; restore the original file.")
    paths = list(files or []) or sorted((folder / SHEETS).glob("*.csv"))
    returned = read_answers(paths, form, assigned, accounts=options.account, by_assignment=options.assigned)
    if returned.answers.is_empty():
        where = folder / SHEETS if not files else files[0] if len(files) == 1 else f"{len(files)} files"
        raise StudyError(f"There are no answers yet in {where}; fill in the sheets first.")
    problems = returned.problems.filter(pl.col("kind") != MISSING)
    return Study(folder, recipe, assigned, key), Answers(returned.answers, problems)


def _read(path: Path) -> pl.DataFrame:
    return unescape_formulas(read_csv(path, StudyError))


def _digest(key: pl.DataFrame) -> str:
    """Digest of a key that is the same after a spreadsheet saved it, which may sort rows and drop empty quotes."""
    return digest([key.columns, *map(list, key.fill_null("").sort(key.columns).iter_rows())])


def annotator_progress(assigned: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return each `annotator`, the number of items `given`, and how many of these are `answered`."""
    own = first_answers(answers).join(assigned, on=["item", "annotator"], how="semi")
    done = own.group_by("annotator").agg(answered=pl.col("item").n_unique())
    given = assigned.group_by("annotator").agg(given=pl.len())
    return given.join(done, on="annotator", how="left").with_columns(pl.col("answered").fill_null(0)).sort("annotator")


def progress_rows(study: Study[R], returned: Answers) -> list[tuple[str, str]]:
    """Return each annotator, and the number of answered items in words."""
    return [
        (name, f"{answered:,} of {given:,}" + ("" if answered else ": nothing yet"))
        for name, given, answered in annotator_progress(study.assigned, returned.answers).iter_rows()
    ]
