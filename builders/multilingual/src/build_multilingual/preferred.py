"""Compare reviewers' preferences in translation with the source's labels and with a judge (paper, section 6.3).

If reviewers of the translation prefer the answer that is better in English, the translation preserved the difference.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.agreement import cohens_kappa
from pluralbench_release import read_tables, share_text, text_table
from pluralbench_release.errors import SourceError
from pluralbench_runs import check_path_name
from pluralbench_studies import StudyError, agreement, check_cells, preference, read_rows, share_over

BETTER = preference("better", "answer 1", "answer 2")
SAME = "same"
SIDES = ("chosen", "rejected")
PREFERRED = pl.Schema(
    {"id": pl.Int64, "language": pl.String, "reviewer": pl.String, "preferred": pl.String, "judge": pl.String}
)
"""`preferred` is "chosen", "rejected" or "same"; `judge` is the judge's preference, null if it has none."""
ALL = "all"
OUTCOMES = {"win": "chosen", "loss": "rejected"}


def read_preferred(paths: Sequence[str], recorded: Sequence[str] = (), judged: str | None = None) -> pl.DataFrame:
    """Read reviewers' preferences (`PREFERRED`) from review sheets and their keys, and those of releases (`recorded`).

    The reviewers of a language are numbered in the order of the files. Files that are not CSV, and sheets with an empty
    column `better`, are ignored. `judged`: `items.parquet` of a judge's run, or a table with `id`, `config` (or
    `language`) and `outcome` ("win" for the chosen answer).

    Raises:
        SourceError: A sheet, its key or a table is missing or damaged.
    """
    rows: list[tuple[int, str, str, str]] = []
    reviewers = Counter[str]()
    for path in (Path(path) for path in paths if Path(path).suffix == ".csv"):
        preferences = _read_sheet(path)
        for language in dict.fromkeys(language for _, language, _ in preferences):
            reviewers[language] += 1
        rows += [(row_id, language, str(reviewers[language]), side) for row_id, language, side in preferences]
    names = PREFERRED.names()[:-1]
    frame = pl.DataFrame(rows, schema={name: PREFERRED[name] for name in names}, orient="row")
    if judged is None or frame.is_empty():
        frame = frame.with_columns(judge=pl.lit(None, dtype=pl.String))
    else:
        frame = frame.join(_read_judge(judged), on=["id", "language"], how="left", maintain_order="left")
    return pl.concat([*map(_read_recorded, recorded), frame]).sort("language", "id", "reviewer")


def review_figures(preferred: pl.DataFrame) -> list[dict[str, Any]]:
    """Compute the figures of reviewers' preferences, by language and over all. Shares have 95 % intervals over rows.

    Returns:
        For each language, JSON values: `reviewed`, the number of preferences, on `rows` by `reviewers`; `same`, those
        for neither answer; `gold`, the share of the others that match the source's better answer; `judge`, the share
        that match the judge, with Cohen's `kappa`; `judge_gold`, how often the judge prefers the better answer on these
        rows; `reviewers_agree`, the share of equal pairs of reviewers' answers to a row.
    """
    languages = preferred["language"].unique(maintain_order=True).to_list()
    parts = [(language, preferred.filter(language=language)) for language in languages]
    return [_figures(name, part) for name, part in [*parts, *([(ALL, preferred)] if len(parts) > 1 else [])]]


def review_table(figures: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Format the figures as a small table."""
    names = ("gold", "judge", "judge_gold", "reviewers_agree")
    return text_table(
        ["language", "rows", "neither", "as in English", "as the judge", "judge: as in English", "reviewers agree"],
        [
            (entry["language"], entry["rows"], entry["same"], *(share_text(entry[name]) for name in names))
            for entry in figures
        ],
    )


def _figures(language: str, part: pl.DataFrame) -> dict[str, Any]:
    strict = part.filter(pl.col("preferred") != SAME)
    both = strict.drop_nulls("judge")
    answers = part.select("id", "language", annotator="reviewer", answer="preferred")
    pairs = agreement(answers, [*SIDES, SAME], cluster="id")["pairs"]
    kappa = cohens_kappa(both["preferred"].to_list(), both["judge"].to_list(), both["id"].cast(pl.String).to_list())
    return {
        "language": language,
        "reviewers": part["reviewer"].n_unique(),
        "rows": part.select("id", "language").n_unique(),
        "reviewed": part.height,
        "same": part.height - strict.height,
        "gold": share_over(strict, "id", pl.col("preferred") == "chosen"),
        "judge": share_over(both, "id", pl.col("preferred") == pl.col("judge"))
        | {"kappa": kappa.value, "kappa_low": kappa.low, "kappa_high": kappa.high},
        "judge_gold": share_over(both.unique(["id", "language"]), "id", pl.col("judge") == "chosen"),
        "reviewers_agree": {"count": pairs["agreeing"], "of": pairs["compared"]}
        | {name: pairs[name] for name in ("share", "low", "high")},
    }


def _read_sheet(path: Path) -> list[tuple[int, str, str]]:
    """Read the id, language and preferred side of each row with `better` filled in."""
    try:
        sheet = read_rows(path)
    except StudyError:
        return []  # not a review sheet; `filtering.read_decisions` reports its problems
    if not {"id", "language", "better"} <= set(sheet.columns):
        return []
    keys: dict[str, dict[str, tuple[str, str]]] = {}
    preferred: dict[tuple[int, str], str] = {}
    unreadable = []
    for number, row in enumerate(sheet.iter_rows(named=True), start=2):  # as a spreadsheet counts, with the header
        if not row["better"].strip():
            continue
        where, language = f"{path}, row {number:,} (id {row['id']})", row["language"]
        try:
            answer = BETTER.answer(row["better"])
        except ValueError as error:
            unreadable.append(f"{where}: {error}.")
            continue
        if language not in keys:
            keys[language] = _read_key(path, check_path_name(language, f"{where}: the language"))
        sides = keys[language].get(row["id"])
        if sides is None:
            raise SourceError(f"{where}: its key has no such row; the key belongs to another or a newer sheet.")
        row_key = int(row["id"]), language
        if row_key in preferred:
            raise SourceError(f"{where} occurs twice; keep one of the rows.")
        preferred[row_key] = SAME if answer == "s" else sides[int(answer) - 1]
    check_cells(unreadable, SourceError)
    return [(*row_key, side) for row_key, side in preferred.items()]


def _read_key(sheet: Path, language: str) -> dict[str, tuple[str, str]]:
    path = sheet.parent / "keys" / f"{language}.csv"
    if not path.is_file():
        raise SourceError(f"{sheet} needs its key {path}; put the folder `keys` of the review next to the sheet.")
    try:
        key = read_rows(path)
    except StudyError as error:
        raise SourceError(str(error)) from None
    columns = ["id", "language", "answer_1", "answer_2"]
    if key.columns != columns or not set(key["answer_1"]) | set(key["answer_2"]) <= set(SIDES):
        raise SourceError(f"{path} is not a key of review sheets; restore the file as it was written.")
    return {row_id: (first, second) for row_id, _, first, second in key.iter_rows()}


def _read_judge(location: str) -> pl.DataFrame:
    """Read a judge's preferences: `id`, `language` and `judge`."""
    frames = list(read_tables(location).frames.values())
    if len(frames) > 1:
        raise SourceError(f"{location} has more than one table; give one file.")
    frame = frames[0]
    language = "language" if "language" in frame.columns else "config"
    for name in ("id", language, "outcome"):
        if name not in frame.columns:
            raise SourceError(
                f"{location} has no column `{name}`; a judge's preferences need id, config and outcome, as in "
                "items.parquet of its run."
            )
    outcome = pl.col("outcome").cast(pl.String).replace_strict(OUTCOMES, default=None, return_dtype=pl.String)
    judged = frame.select(pl.col("id").cast(pl.Int64, strict=False), language=pl.col(language), judge=outcome)
    return judged.drop_nulls("id").unique(["id", "language"], keep="first", maintain_order=True)


def _read_recorded(path: str) -> pl.DataFrame:
    frame = next(iter(read_tables(path).frames.values()))
    if frame.schema != PREFERRED:
        raise SourceError(f"{path} is not a table of reviewers' preferences.")
    return frame
