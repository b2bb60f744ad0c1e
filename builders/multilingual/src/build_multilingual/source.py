"""Read the English pairs: RewardBench's `filtered` split, or any table of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import polars as pl
from pluralbench_release import Source, content_digest, pinned, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, one_line, public_location
from pluralbench_tables import Dialect
from polars.exceptions import PolarsError

from build_multilingual.recipe import COLUMNS, RatedTable, SourceTable

SAMPLE = Path(__file__).parent / "sample"
SAMPLE_SOURCE = {"name": "PluralBench sample", "location": "sample", "license": "apache-2.0"}
SAMPLE_SOURCE |= {"attribution": "Written for PluralBench."}
REWARD_BENCH = "allenai/reward-bench"
TEXTS = ("prompt", "chosen", "rejected")
PAIRS = pl.Schema([("id", pl.Int64), *((name, pl.String) for name in COLUMNS[1:])])
T = TypeVar("T", SourceTable, RatedTable)


@dataclass(frozen=True)
class EnglishPairs:
    """English pairs of a source (`PAIRS`), and the ids of rows with two equal answers, which are not among the pairs.

    `numbered`: whether `id` is the number of the row.
    """

    pairs: pl.DataFrame
    equal: list[int]
    source: Source
    numbered: bool


def pin(table: T) -> T:
    """Pin a table's Hub dataset to its current commit; a dataset with a revision needs no request."""
    return table if table.location == "sample" else table.model_copy(update={"location": pinned(table.location)})


def load(source: SourceTable) -> EnglishPairs:
    """Read the pairs; a row's `id` is the source's if all are distinct whole numbers, else the number of the row.

    Raises:
        SourceError: The table cannot be read or does not have this format.
    """
    sample = source.location == "sample"
    location = str(SAMPLE / "pairs.jsonl") if sample else source.location
    tables = read_tables(location, split=source.split, dialect=Dialect(source.separator, source.quoting))
    parts = [_select_columns(frame, source, tables.paths[config], config) for config, frame in tables.frames.items()]
    rows = pl.concat(parts)
    ids = rows["id"].str.extract(r"^(\d{1,15})(?:\.0)?$", 1).cast(pl.Int64)
    numbered = bool(ids.null_count()) or bool(ids.is_duplicated().any())
    if numbered and rows["id"].drop_nulls().is_duplicated().any():
        repeated = rows.filter(rows["id"].is_duplicated())["id"].drop_nulls()[0]
        raise SourceError(f"{source.location} has the id {repeated!r} more than once; ids must be unique.")
    rows = rows.with_columns(id=pl.int_range(pl.len(), dtype=pl.Int64) if numbered else ids)
    if source.limit is not None:
        rows = rows.filter(pl.int_range(pl.len()).over("subset") < source.limit)
    _check_rows(rows, source)
    entry = Source(
        name=source.name or public_location(source.location).partition("@")[0],
        location=tables.location,
        revision=tables.revision,
        digest=digest(content_digest(rows)),
        rows=rows.height,
        license=tables.license or source.license or "unknown",
        attribution=source.attribution or _attribution(tables.location),
    )
    # Python's white space, as in the comparison of translations; that of polars lacks U+001C to U+001F.
    pairs = rows.select("chosen", "rejected").iter_rows()
    equal = pl.Series([chosen.strip() == rejected.strip() for chosen, rejected in pairs], dtype=pl.Boolean)
    entry = entry.model_copy(update=SAMPLE_SOURCE if sample else {})
    return EnglishPairs(rows.filter(~equal), rows.filter(equal)["id"].to_list(), entry, numbered)


def _attribution(location: str) -> str:
    return (
        "RewardBench (Lambert et al., 2024)."
        if location == REWARD_BENCH
        else f"The authors of {public_location(location)}."
    )


def _select_columns(frame: pl.DataFrame, source: SourceTable, where: str, config: str) -> pl.DataFrame:
    """Return the columns of `PAIRS` as strings, with rows in the source's order."""
    names = {name: source.columns.get(name, name) for name in COLUMNS}
    for name in TEXTS:
        if names[name] not in frame.columns:
            raise SourceError(
                f"{where} has no column `{names[name]}`; it has {', '.join(frame.columns)}. Name the right one with "
                f'`source.columns=["{name}=COLUMN"]`.'
            )
    available = {name: column for name, column in names.items() if column in frame.columns}
    missing = [name for name in source.columns if name not in available]
    if missing:
        raise SourceError(f"{where} has no column `{names[missing[0]]}`; it has {', '.join(frame.columns)}.")
    try:
        return _to_texts(frame, source, available, config)
    except PolarsError as error:
        raise SourceError(f"{where} is not a table of pairs of texts: {one_line(error)}.") from None


def _to_texts(frame: pl.DataFrame, source: SourceTable, names: Mapping[str, str], config: str) -> pl.DataFrame:
    columns = {name: pl.col(column).cast(pl.String) for name, column in names.items()}
    columns.setdefault("id", pl.format("{} {}", pl.lit(config), pl.int_range(pl.len())))
    columns.setdefault("subset", pl.lit(config))
    for name in ("chosen_model", "rejected_model"):
        columns[name] = columns[name].fill_null("unknown") if name in columns else pl.lit("unknown")
    subsets = frame.select(columns["subset"].alias("subset"))["subset"].unique().drop_nulls()
    category = columns["subset"].replace({name: _category(name, source.categories) for name in subsets})
    columns["category"] = columns["category"].fill_null(category) if "category" in columns else category
    return frame.select(columns[name].alias(name) for name in COLUMNS)


def _category(subset: str, categories: Mapping[str, Sequence[str]]) -> str:
    """Return the category of a subset; a subset without one is its own category."""
    return next((name for name, patterns in categories.items() if matches(subset, patterns)), subset)


def matches(subset: str, patterns: Sequence[str]) -> bool:
    """Return whether a subset matches one of the shell patterns."""
    return any(fnmatchcase(subset, pattern) for pattern in patterns)


def _check_rows(rows: pl.DataFrame, source: SourceTable) -> None:
    if rows.is_empty():
        raise SourceError(f"{source.location}: the source has no rows.")
    for name in (*TEXTS, "subset"):
        empty = rows.filter(pl.col(name).is_null())
        if empty.height:
            raise SourceError(f"{source.location}: the row with id {empty['id'][0]} has no `{name}`.")
    for name in ("prompt", "subset", "category"):
        blank = rows.filter(~pl.col(name).str.contains(r"\S"))
        if blank.height:
            raise SourceError(f"{source.location}: the row with id {blank['id'][0]} has an empty `{name}`.")
