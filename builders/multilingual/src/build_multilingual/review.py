"""Write review sheets for translations, one per language, and keys with the order of the answers."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile

import polars as pl
from pluralbench_release.errors import BuildError
from pluralbench_runs import rng_for, write_text
from pluralbench_studies import StudyError, check_unfilled, draw_rows, read_rows, write_sheet
from pluralbench_tables import csv_text

FILLED = ("better", "decision", "reason")
SHOWN = ("id", "language", "prompt_english", "prompt", "answer_1", "answer_2", "check")
SHEET = (*SHOWN, *FILLED)
GUIDE_FILE = "guide.md"
OTHER = "choose another `export_review=...`"
GUIDE = Path(__file__).with_name("review_guide.md")


def check_folder(folder: Path) -> None:
    """Check that review sheets can be written to a folder.

    Raises:
        BuildError: The folder has other files.
        StudyError: A review sheet is filled in.
    """
    if folder.exists() and not folder.is_dir():
        raise BuildError(f"{folder} is not a folder; {OTHER}.")
    sheets = [path for path in sorted(folder.glob("*")) if path.name not in {"keys", GUIDE_FILE}]
    for path in sheets:
        try:
            columns = read_rows(path).columns
        except StudyError:
            columns = []
        if columns != list(SHEET):
            raise BuildError(f"{path} is not a review sheet; {OTHER}.")
    check_unfilled(sheets, FILLED, OTHER)


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

    The order of the answers is random for each row and language, and a sheet shows neither the models nor the subset. A
    filled-in sheet is a file of decisions for the recipe. `frames` include rows that failed a check, which `set_aside`
    (`translate.SET_ASIDE`) explains. `rows`: number of random rows per language; None: all. Raises as `check_folder`.
    """
    check_folder(folder)
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    copyfile(GUIDE, folder / GUIDE_FILE)
    notes = set_aside.group_by("id", "language").agg(check=pl.format("{}: {}", "field", "reason").str.join("; "))
    for code, frame in frames.items():
        drawn = draw_rows(frame, rows, seed, "review", code).with_columns(language=pl.lit(code))
        draws = [rng_for(seed, "review order", code, row_id).random() for row_id in drawn["id"]]
        swapped = pl.when(pl.Series(draws, dtype=pl.Float64) < 0.5)
        shown = (
            drawn.join(english.select("id", prompt_english="prompt"), on="id", how="left", maintain_order="left")
            .join(notes, on=["id", "language"], how="left", maintain_order="left")
            .with_columns(
                answer_1=swapped.then("rejected").otherwise("chosen"),
                answer_2=swapped.then("chosen").otherwise("rejected"),
            )
        )
        write_sheet(folder / f"{code}.csv", shown.select(SHOWN), FILLED)
        sides = [pl.lit(side) for side in ("rejected", "chosen")]
        key = drawn.select(
            "id",
            "language",
            answer_1=swapped.then(sides[0]).otherwise(sides[1]),
            answer_2=swapped.then(sides[1]).otherwise(sides[0]),
        )
        write_text(folder / "keys" / f"{code}.csv", csv_text(key))
    return [folder / f"{code}.csv" for code in frames]
