"""A study's folder: what people fill in, and beside it what only whoever leads the study is to see.

    study.toml      the settings it was made under
    assigned.csv    who has which item
    key.csv         what each item stands for; not for those who fill in the sheets
    sheets/         a sheet NAME.csv for each annotator, and guide.md
    label_studio/   the same for Label Studio

Annotators get the files of `sheets` or of `label_studio`. Sheets that come back may lie anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import polars as pl
from pluralbench_runs import FrozenModel, Recipe, digest, output_directory, read_recipe, write_recipe
from pluralbench_tables import read_csv
from pydantic import Field

from pluralbench_studies.agreement import own_answers
from pluralbench_studies.assignment import ASSIGNED
from pluralbench_studies.errors import AnswersError, AssignmentError, StudyError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import write_label_studio
from pluralbench_studies.reading import Answers, read_answers
from pluralbench_studies.sheets import is_filled, write_sheets

SETTINGS, ASSIGNED_FILE, KEY_FILE = "study.toml", "assigned.csv", "key.csv"
SHEETS, LABEL_STUDIO, GUIDE = "sheets", "label_studio", "guide.md"


class StudyRecipe(Recipe):
    """The settings of a study. annotators: their names. each: how many of them an item has. seed: of every draw.

    key_digest: of `key.csv`, by which `read_study` knows it again; `write_study` enters it.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"key_digest"})

    annotators: list[str] = Field(min_length=1)
    annotators_per_item: int = Field(ge=1)
    seed: int = 0
    key_digest: str = ""


class ProportionRecord(FrozenModel):
    """A share with its 95 % interval, as the results of a study hold it. count: how many, of `of`."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


R = TypeVar("R", bound=StudyRecipe)


@dataclass(frozen=True)
class Study(Generic[R]):
    """A study that was made: its settings, who has which item (columns of `ASSIGNED`), and what the items stand for.

    key: `item` and whatever columns `write_study` was given, all of text.
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
    """Write a study to `folder`; False where the same study is there already, which is left as it is.

    assigned: columns of `ASSIGNED`. key: `item` and what it stands for. shown: `form.item` and the form's fields, a row
    for each item. guide: what annotators are told, Markdown. fresh: replace another study.

    Raises `OutputError` for a folder with other files or a study with other settings, and `StudyError` for one to be
    replaced whose sheets somebody has filled in.
    """
    if fresh:
        check_unfilled(folder / SHEETS, form.names)
    with output_directory(folder, settings, recipe_file=SETTINGS, fresh=fresh) as output:
        if (folder / SETTINGS).exists() and not fresh:
            return False
        staged = output.staging()
        given = assigned.join(shown, left_on="item", right_on=form.item, how="left", maintain_order="left")
        given = given.rename({"item": form.item})
        write_sheets(staged / SHEETS, given, form)
        write_label_studio(staged / LABEL_STUDIO, given, form)
        for name in (SHEETS, LABEL_STUDIO):
            (staged / name / GUIDE).write_text(guide, encoding="utf-8")
        assigned.write_csv(staged / ASSIGNED_FILE)
        key.write_csv(staged / KEY_FILE)
        made = settings.model_copy(update={"key_digest": _digest(read_csv(staged / KEY_FILE, StudyError))})
        write_recipe(made, staged / SETTINGS)
        output.publish(staged)
    return True


def written_lines(folder: Path, settings: StudyRecipe, key: str, *, new: bool) -> list[str]:
    """What there is to say of a study that was written. key: what its key tells. new: see `write_study`."""
    return [
        f"{folder}: {'sheets written' if new else 'the same study is there already, and is left as it is'}",
        f"  {folder / SHEETS}: a CSV for each of {', '.join(sorted(settings.annotators))}, and {GUIDE} for all",
        f"  {folder / LABEL_STUDIO}: the same for Label Studio; use one or the other",
        f"  {folder / KEY_FILE}: {key}; keep it from them",
    ]


def read_study(folder: Path, settings: type[R]) -> Study[R]:
    """The study of `folder`, as `write_study` left it.

    Raises `StudyError` for a folder without one, and for a key that is not what was written (rows in any order).
    """
    for name in (SETTINGS, ASSIGNED_FILE, KEY_FILE):
        if not (folder / name).is_file():
            raise StudyError(
                f"{folder} is no study: it has no {name}; give the folder that the sheets were written to."
            )
    made = read_recipe(settings, folder / SETTINGS)
    assigned, key = (read_csv(folder / name, StudyError) for name in (ASSIGNED_FILE, KEY_FILE))
    kept = {ASSIGNED_FILE: assigned.columns == ASSIGNED.names(), KEY_FILE: _digest(key) == made.key_digest}
    for name, is_kept in kept.items():
        if not is_kept:
            raise StudyError(f"{folder / name} has been changed; put the file back as it was written.")
    return Study(folder, made, assigned, key)


def _digest(key: pl.DataFrame) -> str:
    """What a key says, whatever saved it: a spreadsheet may sort the rows, and drops the marks of an empty text."""
    return digest([key.columns, *map(list, key.fill_null("").sort(key.columns).iter_rows())])


def read_returned(
    study: Study[R],
    files: Sequence[Path],
    form: Form,
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> Answers:
    """What came back of a study: `files`, or without any the sheets of its own folder. See `read_answers`.

    Raises `AnswersError`, also where nobody has answered anything.
    """
    paths = list(files) or sorted((study.folder / SHEETS).glob("*.csv"))
    found = read_answers(paths, form, study.assigned, accounts=accounts, by_assignment=by_assignment)
    if found.answers.is_empty():
        where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        raise AnswersError(f"Nothing is filled in yet in {where if files else study.folder / SHEETS}.")
    return found


def annotator_progress(assigned: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """How far each annotator is: `annotator`, `given` (items) and `answered` (those of them with an answer)."""
    done = own_answers(answers).group_by("annotator").agg(answered=pl.col("item").n_unique())
    given = assigned.group_by("annotator").agg(given=pl.len())
    return given.join(done, on="annotator", how="left").with_columns(pl.col("answered").fill_null(0)).sort("annotator")


def check_unfilled(folder: Path, names: Sequence[str]) -> None:
    """Raise `AssignmentError` where somebody has filled in one of the columns `names` of a sheet in `folder`."""
    for path in sorted(folder.glob("*.csv")):
        if is_filled(path, names):
            raise AssignmentError(f"{path} has been filled in; choose another folder, so that nothing is lost.")
