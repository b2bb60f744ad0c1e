"""Filter rows by failed checks and human decisions (paper, section 3.1).

By default a row that is dropped in one language is dropped in all, so that languages are compared on the same rows.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_release import content_digest, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_schemas import ENGLISH, LANGUAGES, similar_languages
from pluralbench_studies import check_cells
from polars.exceptions import PolarsError

from build_multilingual.recipe import FilterTable
from build_multilingual.translate import IDENTICAL

ALL_LANGUAGES = "all"
INTEGER = re.compile(r"[0-9]{1,15}")
DECISIONS = pl.Schema({"id": pl.Int64, "language": pl.String, "decision": pl.String, "reason": pl.String})
DROPPED = pl.Schema({"id": pl.Int64, "language": pl.String, "by": pl.String, "reason": pl.String})


def read_decisions(paths: Sequence[str]) -> pl.DataFrame:
    """Read the distinct human decisions (`DECISIONS`) of files; an empty decision is none.

    Files have the columns `id` and `decision` ("drop", "keep" or empty), and optionally `language` (empty: all) and
    `reason`; other columns, such as those of review sheets, are ignored.

    Raises:
        SourceError: A file is missing, or a row has an unknown decision, language or id.
    """
    parts = [_read_file(path) for path in paths]
    return pl.concat(parts).unique(maintain_order=True) if parts else pl.DataFrame(schema=DECISIONS)


def _read_file(path: str) -> pl.DataFrame:
    if Path(path).is_dir():
        raise SourceError(f"{path} is a folder; give a file with decisions.")
    if not Path(path).is_file():
        raise SourceError(f"The file of decisions {path} does not exist.")
    frame = next(iter(read_tables(path).frames.values()))
    for name in ("id", "decision"):
        if name not in frame.columns:
            columns = ", ".join(frame.columns)
            raise SourceError(
                f"{path} has no column `{name}`; it has {columns}. Decisions have id, language, decision and reason."
            )
    texts = [
        (pl.col(name).cast(pl.String) if name in frame.columns else pl.lit(None, pl.String).alias(name))
        .fill_null("")
        .str.strip_chars()
        for name in DECISIONS
    ]
    try:
        rows = frame.select(texts).filter(pl.col("decision") != "")
    except PolarsError:
        raise SourceError(f"{path}: a decision, id, language or reason is not a text.") from None
    rows = rows.with_columns(pl.col("decision").str.to_lowercase(), pl.col("language").replace("", ALL_LANGUAGES))
    problems = map(_problem, rows.iter_rows(named=True))
    check_cells([f"{path}: {problem}" for problem in problems if problem], SourceError)
    return rows.cast({"id": pl.Int64})


def _problem(row: Mapping[str, str]) -> str | None:
    if not row["id"]:
        return "a decision has no id."
    if row["decision"] not in {"drop", "keep"}:
        return f"the decision {row['decision']!r} on id {row['id']} is neither drop nor keep."
    if row["language"] not in {ALL_LANGUAGES, *LANGUAGES}:
        near = similar_languages(row["language"])
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        return f"unknown language {row['language']!r} (id {row['id']}){hint}"
    return None if INTEGER.fullmatch(row["id"]) else f"the id {row['id']!r} is not a whole number."


def decisions_digest(decisions: pl.DataFrame) -> str:
    """Compute the SHA-256 of decisions, independent of the order of the rows."""
    key = pl.concat_str("id", "language", "decision", "reason", separator="\t").alias("id")
    return content_digest(decisions.select(key).unique())


def check_ids(rows: pl.DataFrame, ids: set[int], having: str) -> None:
    """Raise `SourceError` if a row is on an id that the source does not have. `having`: how its sentence begins."""
    unknown = rows.filter(~pl.col("id").is_in(sorted(ids)))
    if unknown.height:
        raise SourceError(f"{having} the id {unknown['id'][0]}, which the source does not have.")


def rows_to_drop(
    set_aside: pl.DataFrame, decisions: pl.DataFrame, languages: Sequence[str], ids: set[int]
) -> pl.DataFrame:
    """List the rows that people dropped or that failed a check (columns of `DROPPED`).

    The decision "keep" overrides a check (`translate.SET_ASIDE`), unless the translation is empty or both answers are
    the same. A decision on the English row applies to all languages.

    Raises:
        SourceError: Decisions have an id that is not among `ids`, or contradict each other.
    """
    check_ids(decisions, ids, "The decisions have")
    by_row: dict[tuple[int, str], tuple[str, str]] = {}
    for row_id, language, decision, reason in decisions.iter_rows():
        for code in [*languages, ENGLISH] if language in {ALL_LANGUAGES, ENGLISH} else [language]:
            earlier = by_row.setdefault((row_id, code), (decision, reason))
            if earlier[0] != decision:
                raise SourceError(f"The decisions both keep and drop id {row_id} in {code}.")
    rows = [
        (row_id, code, "person", reason or "dropped by a person")
        for (row_id, code), (decision, reason) in by_row.items()
        if decision == "drop" and code in {*languages, ENGLISH}
    ]
    for row_id, code, name, reason, translation in set_aside.iter_rows():
        keep = by_row.get((row_id, code), ("", ""))[0] == "keep"
        if not keep or not translation.strip() or reason == IDENTICAL:
            rows.append((row_id, code, "check", f"{name}: {reason}"))
    return (
        pl.DataFrame(rows, schema=DROPPED, orient="row")
        .unique(maintain_order=True)
        .sort("id", "language", "by", "reason")
    )


def drop_rows(frames: Mapping[str, pl.DataFrame], dropped: pl.DataFrame, table: FilterTable) -> dict[str, pl.DataFrame]:
    """Remove dropped rows from each language: those dropped in any language or in this one, by the recipe."""
    remaining = {}
    for code, frame in frames.items():
        own = dropped if table.drop == "everywhere" else dropped.filter(language=code)
        remaining[code] = frame.join(own, on="id", how="anti", maintain_order="left")
    return remaining
