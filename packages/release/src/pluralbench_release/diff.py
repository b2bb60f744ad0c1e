"""Which rows came, went or changed between two releases."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import canonical_json

from pluralbench_release.content import content_digest, in_order, read_rows
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing
from pluralbench_release.manifest import read_manifest


@dataclass(frozen=True)
class TableDiff:
    """Differences of one config and split from A to B. changed: for each column, the ids whose value differs."""

    config: str
    split: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def diff(a: Path, b: Path) -> list[TableDiff]:
    """The differences of content between the releases in `a` and `b`, a table each; a false one has none.

    Raises `ReleaseError` when one of them is no release or does not hold what its manifest says: comparing rows that
    are not what they claim to be would prove nothing.
    """
    tables_a, tables_b = _tables(a), _tables(b)
    return [table_diff(pair, tables_a.get(pair), tables_b.get(pair)) for pair in tables_a | tables_b]


def _tables(directory: Path) -> dict[tuple[str, str], pl.DataFrame]:
    tables = {}
    for entry in read_manifest(directory).tables:
        path = existing(directory, entry.path)
        rows = read_rows(path, str(path))
        try:
            changed = content_digest(rows) != entry.digest
        except ReleaseError as error:
            raise ReleaseError(f"{path}: {error}") from None
        if changed:
            raise ReleaseError(f"{path} is not what its manifest says; run `pluralbench-release verify {directory}`.")
        tables[entry.config, entry.split] = rows
    return tables


def table_diff(pair: tuple[str, str], a: pl.DataFrame | None, b: pl.DataFrame | None) -> TableDiff:
    """The differences from the rows `a` to `b`, None where there is no such table. pair: its config and split.

    A column that only one of them has differs in every row.
    """
    rows_a = {} if a is None else {str(row["id"]): row for row in a.iter_rows(named=True)}
    rows_b = {} if b is None else {str(row["id"]): row for row in b.iter_rows(named=True)}
    changed: dict[str, list[str]] = {}
    for row_id in in_order(rows_a.keys() & rows_b.keys(), a, b):
        old, new = rows_a[row_id], rows_b[row_id]
        for column in old | new:
            if _value(old, column) != _value(new, column):
                changed.setdefault(column, []).append(row_id)
    return TableDiff(
        config=pair[0],
        split=pair[1],
        added=in_order(rows_b.keys() - rows_a.keys(), a, b),
        removed=in_order(rows_a.keys() - rows_b.keys(), a, b),
        changed=changed,
    )


def _value(row: Mapping[str, Any], column: str) -> bytes | None:
    """A row's value as canonical JSON; None for no such column."""
    return canonical_json([row[column]]) if column in row else None
