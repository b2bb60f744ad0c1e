"""Which rows stay: those with a good translation in every language, and what people decided (paper, section 3.1).

A row that is dropped in one language is dropped in all, so that languages are compared on the same rows.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_release import content_digest, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_schemas import ENGLISH, LANGUAGES, similar_languages
from polars.exceptions import PolarsError

from build_multilingual.recipe import FilterTable
from build_multilingual.translate import IDENTICAL

EVERY = "all"
WHOLE = re.compile(r"[0-9]{1,15}")
DECISIONS = pl.Schema({"id": pl.Int64, "language": pl.String, "decision": pl.String, "reason": pl.String})
DROPPED = pl.Schema({"id": pl.Int64, "language": pl.String, "by": pl.String, "reason": pl.String})


def read_decisions(paths: Sequence[str]) -> pl.DataFrame:
    """Human decisions (columns of `DECISIONS`), each once; rows without a decision are left out.

    Files have `id` and `decision` ("drop", "keep" or nothing), and may have `language` (nothing stands for all) and
    `reason`; other columns, as those of a review sheet, are not read. Raises `SourceError`.
    """
    parts = [_decisions(path) for path in paths]
    return pl.concat(parts).unique(maintain_order=True) if parts else pl.DataFrame(schema=DECISIONS)


def _decisions(path: str) -> pl.DataFrame:
    if Path(path).is_dir():
        raise SourceError(f"{path} is a folder; give a file with decisions.")
    if not Path(path).is_file():
        raise SourceError(f"There is no file {path} with decisions.")
    frame = next(iter(read_tables(path).frames.values()))
    for name in ("id", "decision"):
        if name not in frame.columns:
            has = ", ".join(frame.columns)
            raise SourceError(
                f"{path} has no column `{name}`; it has {has}, and decisions have id, language, decision and reason."
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
        raise SourceError(f"{path}: a decision, an id, a language or a reason there is no text.") from None
    rows = rows.with_columns(pl.col("decision").str.to_lowercase(), pl.col("language").replace("", EVERY))
    for row in rows.iter_rows(named=True):
        if not row["id"]:
            raise SourceError(f"{path}: a decision has no id.")
        if row["decision"] not in {"drop", "keep"}:
            raise SourceError(f"{path}: the decision {row['decision']!r} on id {row['id']} is neither drop nor keep.")
        if row["language"] not in {EVERY, *LANGUAGES}:
            near = similar_languages(row["language"])
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise SourceError(f"{path}: there is no language {row['language']!r} (id {row['id']}){hint}")
        if not WHOLE.fullmatch(row["id"]):
            raise SourceError(f"{path}: the id {row['id']!r} is no whole number.")
    return rows.cast({"id": pl.Int64})


def decisions_digest(decisions: pl.DataFrame) -> str:
    """SHA-256 of what was decided, whatever the order of the rows."""
    key = pl.concat_str("id", "language", "decision", "reason", separator="\t").alias("id")
    return content_digest(decisions.select(key).unique())


def dropped(
    set_aside: pl.DataFrame, decisions: pl.DataFrame, languages: Sequence[str], known: set[int]
) -> pl.DataFrame:
    """Which rows go, where and why (columns of `DROPPED`): what people dropped and what failed a check.

    A "keep" of a person wins against a check, but not where there is no text, or where both answers are the same.

    Raises `SourceError` for decisions on ids that are not there, or that contradict each other.
    """
    strange = decisions.filter(~pl.col("id").is_in(sorted(known)))
    if strange.height:
        raise SourceError(f"The decisions name the id {strange['id'][0]}, which the source does not have.")
    by_place: dict[tuple[int, str], tuple[str, str]] = {}
    for row_id, language, decision, reason in decisions.iter_rows():
        # A decision on the English row is one on the row, in whatever language.
        for code in [*languages, ENGLISH] if language in {EVERY, ENGLISH} else [language]:
            before = by_place.setdefault((row_id, code), (decision, reason))
            if before[0] != decision:
                raise SourceError(f"The decisions both keep and drop id {row_id} in {code}.")
    rows = [
        (row_id, code, "person", reason or "dropped by a person")
        for (row_id, code), (decision, reason) in by_place.items()
        if decision == "drop" and code in {*languages, ENGLISH}
    ]
    for row_id, code, name, reason, translation in set_aside.iter_rows():
        kept = by_place.get((row_id, code), ("", ""))[0] == "keep"
        if not kept or not translation.strip() or reason == IDENTICAL:
            rows.append((row_id, code, "check", f"{name}: {reason}"))
    return (
        pl.DataFrame(rows, schema=DROPPED, orient="row")
        .unique(maintain_order=True)
        .sort("id", "language", "by", "reason")
    )


def keep(frames: Mapping[str, pl.DataFrame], gone: pl.DataFrame, table: FilterTable) -> dict[str, pl.DataFrame]:
    """Each language's rows without what was dropped there, or anywhere where the recipe says so."""
    kept = {}
    for code, frame in frames.items():
        own = gone if table.drop == "everywhere" else gone.filter(language=code)
        kept[code] = frame.join(own, on="id", how="anti", maintain_order="left")
    return kept
