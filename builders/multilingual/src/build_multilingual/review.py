"""Write review sheets for translations, one per language, and keys with the order of the answers."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
from pluralbench_release.errors import BuildError
from pluralbench_runs import rng_for, write_text
from pluralbench_studies import AnswersError, draw, is_filled, read_rows, write_sheet
from pluralbench_tables import csv_text

FILLED = ("better", "decision", "reason")
SHOWN = ("id", "language", "prompt_english", "prompt", "answer_1", "answer_2", "check")
SHEET = (*SHOWN, *FILLED)
GUIDE_FILE = "guide.md"
GUIDE = """\
# How to review

Each row shows a prompt in English and in your language, and two answers to it in your language. Work alone. A column
may stay empty.

- `better`: 1 if answer 1 is better, 2 if answer 2 is better, s if both are equally good.
- `decision`: drop if a text is so wrong that the row cannot be used, keep to keep a row with a remark under `check`.
- `reason`: why, in your words.

Leave the other columns as they are, and save the sheet as CSV in UTF-8.
"""


def check_folder(folder: Path) -> None:
    """Check that review sheets can be written to a folder.

    Raises:
        BuildError: The folder has other files, or review sheets that are filled in.
    """
    if not folder.exists():
        return
    own = {"keys", GUIDE_FILE}
    if not folder.is_dir() or any(path.suffix != ".csv" and path.name not in own for path in folder.iterdir()):
        raise BuildError(f"{folder} has files that are not review sheets; choose another `export_review=...`.")
    for path in sorted(folder.glob("*.csv")):
        try:
            columns = read_rows(path).columns
        except AnswersError:
            columns = []
        if columns != list(SHEET):
            raise BuildError(f"{path} is not a review sheet; choose another `export_review=...`.")
        if is_filled(path, FILLED):
            raise BuildError(f"{path} is already filled in; choose another `export_review=...`.")


def write_review_sheets(
    folder: Path,
    frames: Mapping[str, pl.DataFrame],
    english: pl.DataFrame,
    set_aside: pl.DataFrame,
    *,
    rows: int | None,
    seed: int,
) -> list[Path]:
    """Write `LANGUAGE.csv` and `keys/LANGUAGE.csv` for each language, and `guide.md` with what reviewers fill in.

    The order of the answers is random for each row and language, and a sheet shows neither the models nor the subset.
    A filled-in sheet is a file of decisions for the recipe.

    Args:
        folder: Folder for the sheets.
        frames: Rows by language, including those that failed a check.
        english: Pairs of the source.
        set_aside: Texts that failed a check, columns of `translate.SET_ASIDE`.
        rows: Number of random rows per language. None: all.
        seed: Seed of the draws.

    Returns:
        Paths of the sheets.

    Raises:
        BuildError: See `check_folder`.
    """
    check_folder(folder)
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    write_text(folder / GUIDE_FILE, GUIDE)
    prompts = dict(english.select("id", "prompt").iter_rows())
    paths = []
    for code, frame in frames.items():
        failed = (
            set_aside.filter(language=code).group_by("id").agg(pl.format("{}: {}", "field", "reason").str.join("; "))
        )
        notes = dict(failed.iter_rows())
        sheet, key = [], []
        ids = frame["id"].to_list()
        drawn = draw(ids, len(ids) if rows is None else rows, seed, "review", code)
        for row in frame.filter(pl.col("id").is_in(drawn)).iter_rows(named=True):
            order = ("chosen", "rejected")
            if rng_for(seed, "review order", code, row["id"]).random() < 0.5:
                order = ("rejected", "chosen")
            answers = [row[side] for side in order]
            note = notes.get(row["id"], "")
            sheet.append((row["id"], code, prompts[row["id"]], row["prompt"], *answers, note))
            key.append((row["id"], code, *order))
        path = folder / f"{code}.csv"
        write_sheet(path, pl.DataFrame(sheet, schema=list(SHOWN), orient="row"), FILLED)
        names = ["id", "language", "answer_1", "answer_2"]
        write_text(folder / "keys" / f"{code}.csv", csv_text(pl.DataFrame(key, schema=names, orient="row")))
        paths.append(path)
    return paths
