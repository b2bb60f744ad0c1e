"""Which answer reviewers preferred in translation, beside the source's better one and a judge (paper, section 6.3).

Where people who read the translation prefer the answer that is better in English, the translation kept what makes it
better.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.kappa import cohens_kappa
from pluralbench_release import read_tables, share_text, text_table
from pluralbench_release.errors import SourceError
from pluralbench_studies import AnswersError, agreement, preference, read_rows, share_over

BETTER = preference("better", "answer 1", "answer 2")
SAME = "same"
SIDES = ("chosen", "rejected")
PREFERRED = pl.Schema(
    {"id": pl.Int64, "language": pl.String, "reviewer": pl.String, "preferred": pl.String, "judge": pl.String}
)
"""preferred: "chosen", "rejected" or "same". judge: what the judge preferred, null where it preferred none."""
ALL = "all"
JUDGED = {"win": "chosen", "loss": "rejected"}


def read_preferred(paths: Sequence[str], recorded: Sequence[str] = (), judged: str | None = None) -> pl.DataFrame:
    """What reviewers preferred (columns of `PREFERRED`), from review sheets with their keys.

    recorded: where releases record it. judged: the `items.parquet` of a judge's run, or a table with `id`, `config` (or
    `language`) and `outcome` (win: the chosen one). Sheets in which no `better` is filled in, and files that are no
    CSV, tell nothing. The reviewers of a language are numbered in the order of the files.

    Raises `SourceError`.
    """
    rows: list[tuple[int, str, str, str]] = []
    reviewers = Counter[str]()
    for path in (Path(path) for path in paths if Path(path).suffix == ".csv"):
        own = _of_sheet(path)
        for language in dict.fromkeys(language for _, language, _ in own):
            reviewers[language] += 1
        rows += [(row_id, language, str(reviewers[language]), side) for row_id, language, side in own]
    names = PREFERRED.names()[:-1]
    frame = pl.DataFrame(rows, schema={name: PREFERRED[name] for name in names}, orient="row")
    if judged is None or frame.is_empty():
        frame = frame.with_columns(judge=pl.lit(None, dtype=pl.String))
    else:
        frame = frame.join(_of_judge(judged), on=["id", "language"], how="left", maintain_order="left")
    return pl.concat([*map(_recorded, recorded), frame]).sort("language", "id", "reviewer")


def check_known(preferred: pl.DataFrame, known: set[int]) -> None:
    """Raise `SourceError` for a preference on an id that is not there."""
    strange = preferred.filter(~pl.col("id").is_in(sorted(known)))
    if strange.height:
        raise SourceError(f"A review sheet names the id {strange['id'][0]}, which the source does not have.")


def review_figures(preferred: pl.DataFrame) -> list[dict[str, Any]]:
    """What reviewers preferred, by language and over all, JSON; shares have their 95 % interval over rows.

    reviewed: preferences there are, of `rows` by `reviewers`; same: those that prefer neither. gold: how many of the
    others are the better answer of the source. judge: how many are what the judge prefers, where it prefers one, with
    Cohen's `kappa`; judge_gold: how often the judge, on the same rows, prefers the better answer. reviewers_agree:
    pairs of reviewers' answers to a row that are the same.
    """
    languages = preferred["language"].unique(maintain_order=True).to_list()
    parts = [(language, preferred.filter(language=language)) for language in languages]
    return [_figures(name, part) for name, part in [*parts, *([(ALL, preferred)] if len(parts) > 1 else [])]]


def review_table(figures: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The figures as a small table of texts."""
    names = ("gold", "judge", "judge_gold", "reviewers_agree")
    return text_table(
        [
            "language",
            "rows",
            "neither",
            "better in English",
            "the judge's",
            "judge: better in English",
            "reviewers agree",
        ],
        [
            (entry["language"], entry["rows"], entry["same"], *(share_text(entry[name]) for name in names))
            for entry in figures
        ],
    )


def _figures(language: str, part: pl.DataFrame) -> dict[str, Any]:
    strict = part.filter(pl.col("preferred") != SAME)
    both = strict.drop_nulls("judge")
    named = part.select("id", "language", annotator="reviewer", answer="preferred")
    among = agreement(named, [*SIDES, SAME], cluster="id")["pairs"]
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
        "reviewers_agree": {"count": among["agreeing"], "of": among["compared"]}
        | {name: among[name] for name in ("share", "low", "high")},
    }


def _of_sheet(path: Path) -> list[tuple[int, str, str]]:
    """The id, the language and the side that is preferred of each row of a sheet in which `better` is filled in."""
    try:
        sheet = read_rows(path)
    except AnswersError:
        return []  # no sheet of ours; what is wrong with it as decisions is said elsewhere
    if not {"id", "language", "better"} <= set(sheet.columns):
        return []
    keys: dict[str, dict[str, tuple[str, str]]] = {}
    found: dict[tuple[int, str], str] = {}
    for number, row in enumerate(sheet.iter_rows(named=True), start=1):
        if not row["better"].strip():
            continue
        where, language = f"{path}, row {number:,} (id {row['id']})", row["language"]
        try:
            answer = BETTER.answer(row["better"])
        except ValueError as fault:
            raise SourceError(f"{where}: {fault}.") from None
        if language not in keys:
            keys[language] = _key(path, language)
        sides = keys[language].get(row["id"])
        if sides is None:
            raise SourceError(f"{where}: its key has no such row; the sheet is of another review, or was made anew.")
        place = int(row["id"]), language
        if place in found:
            raise SourceError(f"{where} is there twice; keep one of them.")
        found[place] = SAME if answer == "s" else sides[int(answer) - 1]
    return [(*place, side) for place, side in found.items()]


def _key(sheet: Path, language: str) -> dict[str, tuple[str, str]]:
    path = sheet.parent / "keys" / f"{language}.csv"
    if not path.is_file():
        raise SourceError(
            f"{sheet} says which answers are better, and there is no {path} to tell which was which; put the folder "
            "`keys` of the review beside the sheet."
        )
    try:
        key = read_rows(path)
    except AnswersError as error:
        raise SourceError(str(error)) from None
    wanted = ["id", "language", "answer_1", "answer_2"]
    if key.columns != wanted or not set(key["answer_1"]) | set(key["answer_2"]) <= set(SIDES):
        raise SourceError(f"{path} is no key of review sheets; put the file back as it was written.")
    return {row_id: (first, second) for row_id, _, first, second in key.iter_rows()}


def _of_judge(location: str) -> pl.DataFrame:
    """What a judge preferred: `id`, `language`, `judge`."""
    frames = list(read_tables(location).frames.values())
    if len(frames) > 1:
        raise SourceError(f"{location} is more than one table.")
    frame = frames[0]
    language = "language" if "language" in frame.columns else "config"
    for name in ("id", language, "outcome"):
        if name not in frame.columns:
            raise SourceError(
                f"{location} has no column `{name}`; what a judge preferred has id, config and outcome, as "
                "items.parquet of its run has."
            )
    outcome = pl.col("outcome").cast(pl.String).replace_strict(JUDGED, default=None, return_dtype=pl.String)
    judged = frame.select(pl.col("id").cast(pl.Int64, strict=False), language=pl.col(language), judge=outcome)
    return judged.drop_nulls("id").unique(["id", "language"], keep="first", maintain_order=True)


def _recorded(path: str) -> pl.DataFrame:
    frame = next(iter(read_tables(path).frames.values()))
    if frame.schema != PREFERRED:
        raise SourceError(f"{path} does not record what reviewers preferred.")
    return frame
