"""The folder of a study.

    study.toml      settings of the study
    assigned.csv    assignment of items to annotators
    key.csv         what each item stands for; annotators must not see it
    sheets/         a sheet NAME.csv for each annotator, and guide.md
    label_studio/   the same for Label Studio

Annotators get the files of `sheets` or of `label_studio`. Returned sheets may be anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import polars as pl
from pluralbench_runs import FrozenModel, Recipe, Seed, digest, output_directory, read_recipe, write_recipe, write_text
from pluralbench_tables import csv_text, read_csv, unescape_formulas
from pydantic import Field

from pluralbench_studies.agreement import first_answers
from pluralbench_studies.assignment import ASSIGNED
from pluralbench_studies.errors import AnswersError, AssignmentError, StudyError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import write_label_studio
from pluralbench_studies.reading import Answers, read_answers
from pluralbench_studies.sheets import is_filled, write_sheets

SETTINGS, ASSIGNED_FILE, KEY_FILE = "study.toml", "assigned.csv", "key.csv"
SHEETS, LABEL_STUDIO, GUIDE = "sheets", "label_studio", "guide.md"


class StudyRecipe(Recipe):
    """The settings of a study.

    Attributes:
        annotators: Names of the annotators.
        annotators_per_item: Number of annotators of each item.
        seed: Seed of all draws.
        key_digest: Digest of `key.csv`, by which `read_study` recognizes it. `write_study` sets it.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"key_digest"})

    annotators: list[str] = Field(min_length=1)
    annotators_per_item: int = Field(ge=1)
    seed: Seed = 0
    key_digest: str = ""


class ProportionRecord(FrozenModel):
    """A share with its 95 % interval in the results of a study: `count` of `of`."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


R = TypeVar("R", bound=StudyRecipe)


@dataclass(frozen=True)
class Study(Generic[R]):
    """A study that was written to a folder.

    Attributes:
        folder: Its folder.
        settings: Its settings.
        assigned: Assignment of items to annotators (columns of `ASSIGNED`).
        key: What each item stands for: `item` and further columns, all as text.
    """

    folder: Path
    settings: R
    assigned: pl.DataFrame
    key: pl.DataFrame


def write_study(
    folder: Path,
    settings: StudyRecipe,
    assigned: pl.DataFrame,
    key: pl.DataFrame,
    shown: pl.DataFrame,
    form: Form,
    guide: str,
    *,
    fresh: bool = False,
) -> bool:
    """Write a study to a folder. If the folder has the same study already, it is left as it is.

    Args:
        folder: The folder.
        settings: Settings of the study.
        assigned: Assignment of items to annotators (columns of `ASSIGNED`).
        key: What each item stands for: `item` and further columns.
        shown: `form.item` and the form's fields, a row for each item.
        form: The form.
        guide: Instructions for annotators, in Markdown.
        fresh: Whether to replace another study.

    Returns:
        Whether the study is new.

    Raises:
        OutputError: If the folder has other files, or a study with other settings.
        StudyError: If a sheet of the study to replace has been filled in.
    """
    if fresh:
        check_unfilled(folder / SHEETS, form.names)
    with output_directory(folder, settings, recipe_file=SETTINGS, fresh=fresh) as output:
        if (folder / SETTINGS).exists() and not fresh:
            return False
        staged = output.staging()
        rows = assigned.join(shown, left_on="item", right_on=form.item, how="left", maintain_order="left")
        rows = rows.rename({"item": form.item})
        write_sheets(staged / SHEETS, rows, form)
        write_label_studio(staged / LABEL_STUDIO, rows, form)
        for name in (SHEETS, LABEL_STUDIO):
            (staged / name / GUIDE).write_text(guide, encoding="utf-8")
        write_text(staged / ASSIGNED_FILE, csv_text(assigned))
        write_text(staged / KEY_FILE, csv_text(key))
        completed = settings.model_copy(update={"key_digest": _digest(_read(staged / KEY_FILE))})
        write_recipe(completed, staged / SETTINGS)
        output.publish(staged)
    return True


def study_summary(folder: Path, settings: StudyRecipe, key: str, *, new: bool) -> list[str]:
    """Return lines that describe the files of a study.

    Args:
        folder: The folder.
        settings: Settings of the study.
        key: What the study's key says.
        new: Whether the study is new.
    """
    return [
        f"{folder}: {'sheets written' if new else 'the same study exists already and is left as it is'}",
        f"  {folder / SHEETS}: a CSV for each of {', '.join(sorted(settings.annotators))}, and {GUIDE} for all",
        f"  {folder / LABEL_STUDIO}: the same for Label Studio; use one or the other",
        f"  {folder / KEY_FILE}: {key}; do not show it to annotators",
    ]


def read_study(folder: Path, settings: type[R]) -> Study[R]:
    """Read the study that `write_study` wrote to a folder.

    Args:
        folder: The folder.
        settings: Class of the study's settings.

    Raises:
        StudyError: If the folder has no study, or its key has been changed. Reordered rows are no change.
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
    return Study(folder, recipe, assigned, key)


def _read(path: Path) -> pl.DataFrame:
    return unescape_formulas(read_csv(path, StudyError))


def _digest(key: pl.DataFrame) -> str:
    """Digest of a key that is the same after a spreadsheet saved it, which may sort rows and drop empty quotes."""
    return digest([key.columns, *map(list, key.fill_null("").sort(key.columns).iter_rows())])


def read_returned(
    study: Study[R],
    files: Sequence[Path],
    form: Form,
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> Answers:
    """Read the answers of a study; see `read_answers`.

    Args:
        study: The study.
        files: The returned files. Empty: the sheets in the study's folder.
        form: The form.
        accounts: Annotator of a Label Studio account, by its e-mail address or number.
        by_assignment: Whether all answers belong to the annotator that the item was assigned to.

    Raises:
        AnswersError: If a file cannot be read, or there is no answer.
    """
    paths = list(files) or sorted((study.folder / SHEETS).glob("*.csv"))
    returned = read_answers(paths, form, study.assigned, accounts=accounts, by_assignment=by_assignment)
    if returned.answers.is_empty():
        where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        raise AnswersError(
            f"There are no answers yet in {where if files else study.folder / SHEETS}; fill in the sheets first."
        )
    return returned


def annotator_progress(assigned: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return each `annotator`, the number of items `given`, and how many of these are `answered`.

    Answers to items that were given to others are problems (`Answers.problems`).
    """
    own = first_answers(answers).join(assigned, on=["item", "annotator"], how="semi")
    done = own.group_by("annotator").agg(answered=pl.col("item").n_unique())
    given = assigned.group_by("annotator").agg(given=pl.len())
    return given.join(done, on="annotator", how="left").with_columns(pl.col("answered").fill_null(0)).sort("annotator")


def check_unfilled(folder: Path, names: Sequence[str]) -> None:
    """Raise `AssignmentError` if a sheet in `folder` has an answer in one of the columns `names`."""
    for path in sorted(folder.glob("*.csv")):
        if is_filled(path, names):
            raise AssignmentError(f"{path} has been filled in; choose another folder, so that nothing is lost.")
