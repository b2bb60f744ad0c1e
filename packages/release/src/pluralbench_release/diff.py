"""Rows that were added, removed or changed between two releases."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import canonical_json

from pluralbench_release.content import content_digest, read_rows, sort_ids
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing_file
from pluralbench_release.manifest import read_manifest


@dataclass(frozen=True)
class TableDiff:
    """Differences of one config and split from A to B; false if there are none. `changed` has ids by column."""

    config: str
    split: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def diff(a: Path, b: Path) -> list[TableDiff]:
    """Compare the content of two releases, table by table.

    Raises:
        ReleaseError: One of them is not a release, or its rows do not match its manifest.
    """
    tables_a, tables_b = _verified_tables(a), _verified_tables(b)
    return [table_diff(pair, tables_a.get(pair), tables_b.get(pair)) for pair in tables_a | tables_b]


def _verified_tables(directory: Path) -> dict[tuple[str, str], pl.DataFrame]:
    tables = {}
    for entry in read_manifest(directory).tables:
        path = existing_file(directory, entry.path)
        rows = read_rows(path, str(path))
        try:
            changed = content_digest(rows) != entry.digest
        except ReleaseError as error:
            raise ReleaseError(f"{path}: {error}") from None
        if changed:
            raise ReleaseError(f"{path} does not match its manifest; run `pluralbench-release verify {directory}`.")
        tables[entry.config, entry.split] = rows
    return tables


def table_diff(pair: tuple[str, str], a: pl.DataFrame | None, b: pl.DataFrame | None) -> TableDiff:
    """Compare two versions of a table, None if one lacks it.

    A column that only one version has differs in every row.
    """
    rows_a = {} if a is None else {str(row["id"]): row for row in a.iter_rows(named=True)}
    rows_b = {} if b is None else {str(row["id"]): row for row in b.iter_rows(named=True)}
    changed: dict[str, list[str]] = {}
    for row_id in sort_ids(rows_a.keys() & rows_b.keys(), a, b):
        old, new = rows_a[row_id], rows_b[row_id]
        for column in old | new:
            if _value(old, column) != _value(new, column):
                changed.setdefault(column, []).append(row_id)
    return TableDiff(
        config=pair[0],
        split=pair[1],
        added=sort_ids(rows_b.keys() - rows_a.keys(), a, b),
        removed=sort_ids(rows_a.keys() - rows_b.keys(), a, b),
        changed=changed,
    )


def _value(row: Mapping[str, Any], column: str) -> bytes | None:
    return canonical_json([row[column]]) if column in row else None
