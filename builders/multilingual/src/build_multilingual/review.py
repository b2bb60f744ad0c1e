"""Sheets on which people look at translations, one a language, and the keys that say which answer was which."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
from pluralbench_release.errors import BuildError
from pluralbench_runs import rng_for, write_text
from pluralbench_studies import AnswersError, draw, is_filled, read_rows, write_sheet

FILLED = ("better", "decision", "reason")
SHOWN = ("id", "language", "prompt_english", "prompt", "answer_1", "answer_2", "check")
SHEET = (*SHOWN, *FILLED)


def check_folder(folder: Path) -> None:
    """Raise `BuildError` for a folder that holds something else, or sheets that somebody has filled in."""
    if not folder.exists():
        return
    if not folder.is_dir() or any(path.suffix != ".csv" and path.name != "keys" for path in folder.iterdir()):
        raise BuildError(f"{folder} holds files that are no review sheets; choose another --export-review.")
    for path in sorted(folder.glob("*.csv")):
        try:
            columns = read_rows(path).columns
        except AnswersError:
            columns = []
        if columns != list(SHEET):
            raise BuildError(f"{path} is no review sheet; choose another --export-review.")
        if is_filled(path, FILLED):
            raise BuildError(f"{path} has been filled in; choose another --export-review, so that nothing is lost.")


def export_review(
    folder: Path,
    frames: Mapping[str, pl.DataFrame],
    english: pl.DataFrame,
    set_aside: pl.DataFrame,
    *,
    rows: int | None,
    seed: int,
) -> list[Path]:
    """Write `LANGUAGE.csv` and `keys/LANGUAGE.csv` for each language; returns the paths of the sheets.

    frames: the rows by language, those that failed a check included. english: the source's pairs. rows: how many of
    each language, drawn by `seed`; all where it is None. Which answer comes first is drawn for each row and language.
    Of who wrote the answers and from which subset they are, a sheet says nothing. `better` (1, 2 or nothing),
    `decision` (drop, keep or nothing) and `reason` are for the reviewer; a sheet is read again as decisions.

    Raises `BuildError` (see `check_folder`).
    """
    check_folder(folder)
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    prompts = dict(english.select("id", "prompt").iter_rows())
    written = []
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
        write_text(folder / "keys" / f"{code}.csv", pl.DataFrame(key, schema=names, orient="row").write_csv())
        written.append(path)
    return written
