"""The English pairs: RewardBench's `filtered` split, or any table of pairs."""

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
OF_SAMPLE = {"name": "PluralBench sample", "location": "sample", "license": "apache-2.0"}
OF_SAMPLE |= {"attribution": "Written for PluralBench."}
REWARD_BENCH = "allenai/reward-bench"
TEXTS = ("prompt", "chosen", "rejected")
PAIRS = pl.Schema([("id", pl.Int64), *((name, pl.String) for name in COLUMNS[1:])])
T = TypeVar("T", SourceTable, RatedTable)


@dataclass(frozen=True)
class Loaded:
    """English pairs (columns of `PAIRS`), and where they came from.

    equal: ids of rows whose two answers are the same text, which are not among the pairs. numbered: whether `id` is the
    number of the row.
    """

    pairs: pl.DataFrame
    equal: list[int]
    source: Source
    numbered: bool


def pin(table: T) -> T:
    """The table with a Hub dataset pinned to the commit it stands at now; a pinned one asks nobody."""
    return table if table.location == "sample" else table.model_copy(update={"location": pinned(table.location)})


def load(source: SourceTable) -> Loaded:
    """Read the pairs. A row's `id` is the source's where that is a whole number, else the number of the row.

    Raises `SourceError` for a table that cannot be read or is not of this shape.
    """
    sample = source.location == "sample"
    location = str(SAMPLE / "pairs.jsonl") if sample else source.location
    tables = read_tables(location, split=source.split, dialect=Dialect(source.separator, source.quoting))
    parts = [_named(frame, source, tables.paths[config], config) for config, frame in tables.frames.items()]
    rows = pl.concat(parts)
    ids = rows["id"].str.extract(r"^(\d{1,15})(?:\.0)?$", 1).cast(pl.Int64)
    numbered = bool(ids.null_count()) or bool(ids.is_duplicated().any())
    if numbered and rows["id"].drop_nulls().is_duplicated().any():
        twice = rows.filter(rows["id"].is_duplicated())["id"].drop_nulls()[0]
        raise SourceError(f"{source.location} has the id {twice!r} more than once, so languages could not be matched.")
    rows = rows.with_columns(id=pl.int_range(pl.len(), dtype=pl.Int64) if numbered else ids)
    if source.limit is not None:
        rows = rows.filter(pl.int_range(pl.len()).over("subset") < source.limit)
    _check(rows, source)
    entry = Source(
        name=source.name or public_location(source.location).partition("@")[0],
        location=tables.location,
        revision=tables.revision,
        digest=digest(content_digest(rows)),
        rows=rows.height,
        license=tables.license or source.license or "unknown",
        attribution=source.attribution or _attribution(tables.location),
    )
    # By Python's white space, as translations are compared later: polars' lacks the separators U+001C to U+001F.
    pairs = rows.select("chosen", "rejected").iter_rows()
    equal = pl.Series([chosen.strip() == rejected.strip() for chosen, rejected in pairs], dtype=pl.Boolean)
    entry = entry.model_copy(update=OF_SAMPLE if sample else {})
    return Loaded(rows.filter(~equal), rows.filter(equal)["id"].to_list(), entry, numbered)


def _attribution(location: str) -> str:
    return (
        "RewardBench (Lambert et al., 2024)."
        if location == REWARD_BENCH
        else f"The authors of {public_location(location)}."
    )


def _named(frame: pl.DataFrame, source: SourceTable, where: str, config: str) -> pl.DataFrame:
    """The columns of `PAIRS` as strings, in the source's order."""
    names = {name: source.columns.get(name, name) for name in COLUMNS}
    for name in TEXTS:
        if names[name] not in frame.columns:
            raise SourceError(
                f"{where} has no column `{names[name]}`; it has {', '.join(frame.columns)}: name the right one under "
                f"[source.columns] with `{name} = ...` (or --column {name}=...)."
            )
    there = {name: column for name, column in names.items() if column in frame.columns}
    missing = [name for name in source.columns if name not in there]
    if missing:
        raise SourceError(f"{where} has no column `{names[missing[0]]}`; it has {', '.join(frame.columns)}.")
    try:
        return _texts(frame, source, there, config)
    except PolarsError as error:
        raise SourceError(f"{where} is no table of pairs of texts: {one_line(error)}.") from None


def _texts(frame: pl.DataFrame, source: SourceTable, there: Mapping[str, str], config: str) -> pl.DataFrame:
    columns = {name: pl.col(column).cast(pl.String) for name, column in there.items()}
    columns.setdefault("id", pl.format("{} {}", pl.lit(config), pl.int_range(pl.len())))
    columns.setdefault("subset", pl.lit(config))
    for name in ("chosen_model", "rejected_model"):
        columns[name] = columns[name].fill_null("unknown") if name in columns else pl.lit("unknown")
    subsets = frame.select(columns["subset"].alias("subset"))["subset"].unique().drop_nulls()
    named = columns["subset"].replace({name: category_of(name, source.categories) for name in subsets})
    columns["category"] = columns["category"].fill_null(named) if "category" in columns else named
    return frame.select(columns[name].alias(name) for name in COLUMNS)


def category_of(subset: str, categories: Mapping[str, Sequence[str]]) -> str:
    """The category of a subset; a subset that is in none is a category of its own."""
    return next((name for name, patterns in categories.items() if matches(subset, patterns)), subset)


def matches(subset: str, patterns: Sequence[str]) -> bool:
    """Whether a subset is one of these shell patterns."""
    return any(fnmatchcase(subset, pattern) for pattern in patterns)


def _check(rows: pl.DataFrame, source: SourceTable) -> None:
    if rows.is_empty():
        raise SourceError(f"{source.location}: the source has no rows.")
    for name in (*TEXTS, "subset"):
        empty = rows.filter(pl.col(name).is_null())
        if empty.height:
            raise SourceError(f"{source.location}: the row of id {empty['id'][0]} has no `{name}`.")
    for name in ("prompt", "subset", "category"):
        blank = rows.filter(~pl.col(name).str.contains(r"\S"))
        if blank.height:
            raise SourceError(f"{source.location}: the row of id {blank['id'][0]} has an empty `{name}`.")
