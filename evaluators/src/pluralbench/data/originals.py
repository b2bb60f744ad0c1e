"""The English original of a translated benchmark, which is scored beside the translations."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl
from pluralbench_release import Tables, concat_tables, read_tables

from pluralbench.config import DataConfig
from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import DataError


def with_original(benchmark: Benchmark, tables: Tables, data: DataConfig) -> tuple[Tables, dict[str, Any] | None]:
    """Add the English original of a translated benchmark as a config, with only the ids that other configs score.

    Returns the tables, and where the original is from; None if it is in the data.

    Raises:
        DataError: If there is no original, or it shares no id with the data.
        TablesError: If it cannot be read.
    """
    reference = benchmark.reference
    if reference is None:
        if data.english is not None:
            raise DataError(f"{benchmark.title} is not translated from English; leave out `english=...`.")
        return tables, None
    place, column = reference.config, benchmark.columns.id
    others = {config: frame for config, frame in tables.frames.items() if config not in benchmark.outside_overall}
    if data.english is None and (place in tables.frames or data.location is not None):
        if data.limit is None or place not in tables.frames or not others:
            return tables, None
        shared = _shared_rows(tables.frames[place], others.values(), column, data.limit)
        return replace(tables, frames=tables.frames | {place: shared}), None
    original = read_tables(data.english or reference.data, split=reference.split, dialect=benchmark.dialect)
    parts, where = original.frames, next(iter(original.paths.values()))
    # The configs of a published original are its parts; those of a release are languages.
    if place in original.frames:
        parts, where = {place: original.frames[place]}, original.paths[place]
    if any(column not in frame.columns for frame in [*parts.values(), *others.values()]):
        raise DataError(f"{where} cannot be matched with the data; add a column `{column}` of ids to both.")
    frame = _shared_rows(concat_tables(parts, where), others.values(), column, data.limit)
    if frame.is_empty():
        raise DataError(f"{where} shares no id with the data; choose the original with `english=...`.")
    record: dict[str, Any] = {"location": original.location, "revision": original.revision}
    return replace(tables, frames=tables.frames | {place: frame}, paths=tables.paths | {place: where}), record


def _shared_rows(english: pl.DataFrame, others: Iterable[pl.DataFrame], column: str, limit: int | None) -> pl.DataFrame:
    """Return the English rows whose ids are among the first `limit` rows of another config."""
    if any(column not in frame.columns for frame in (english, *others)):
        return english
    ids = {str(value) for frame in others for value in (frame[column] if limit is None else frame[column].head(limit))}
    return english.filter(english[column].cast(pl.String).is_in(sorted(ids)))
