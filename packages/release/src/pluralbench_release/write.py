"""Write tables as a dataset directory that is already a Hub repository."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
from pluralbench_runs import check_path_name, check_split_name, file_digest, recipe_values, safe_join, write_recipe
from pluralbench_schemas import SCHEMAS, validate

from pluralbench_release.card import Card, write_card
from pluralbench_release.checksums import write_checksums
from pluralbench_release.content import ReleaseTable, digests, write_parquet
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import (
    CARD,
    LEDGER,
    MANIFEST,
    ROW_DIGESTS,
    STATISTICS,
    SUMS,
    BuilderEntry,
    LedgerEntry,
    Manifest,
    Source,
    TableEntry,
    json_text,
    manifest_text,
    repeated,
)
from pluralbench_release.recipe import RECIPE, ReleaseRecipe

FILES = (RECIPE, LEDGER, STATISTICS, ROW_DIGESTS)


@dataclass(frozen=True)
class Builder:
    """Who builds: the entry point (group `pluralbench.builders`) that can rebuild a release, and who installs it."""

    name: str
    distribution: str


@dataclass(frozen=True)
class Contents:
    """What is in a release.

    statistics: figures to commit beside the data, JSON. records: tables to commit beside them, as
    `provenance/NAME.parquet` by name, such as what was left out and why. files: copied as they are, by path in the
    release, such as the rows in another form.
    """

    tables: Sequence[ReleaseTable]
    sources: Sequence[Source]
    statistics: dict[str, Any]
    card: Card
    records: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)


def write(
    directory: Path,
    contents: Contents,
    *,
    recipe: ReleaseRecipe,
    builder: Builder,
    ledger: Path,
    place: str | None = None,
) -> Manifest:
    """Fill the empty `directory` with a release of these contents and return its manifest.

    ledger: Parquet of the recorded calls that the rows depend on; it is copied. place: the name of the folder that the
    release will lie in, where that is another.

    Raises `pluralbench_schemas.TableError` for rows that break their schema, `ReleaseError` for no rows at all, and
    `pluralbench_runs.UserError` for a config, split, record or file whose name is none for a path.
    """
    recorded = {f"provenance/{name}.parquet": frame for name, frame in contents.records.items()}
    _check_names(directory, contents, recorded)
    (directory / MANIFEST).parent.mkdir(parents=True)
    entries, by_row = [], []
    for table in contents.tables:
        validate(table.frame, SCHEMAS[table.schema], file=table.path)
        content, rows = digests(table.frame)
        entries.append(_write_table(directory, table, content))
        by_row += [(table.config, table.split, row_id, digest) for row_id, digest in rows.items()]
    names = ["config", "split", "id", "digest"]
    write_parquet(pl.DataFrame(by_row, schema=names, orient="row"), directory / ROW_DIGESTS)
    for path, frame in recorded.items():
        write_parquet(frame, safe_join(directory, path))
    for path, file in contents.files.items():
        safe_join(directory, path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, safe_join(directory, path))
    shutil.copyfile(ledger, directory / LEDGER)
    write_recipe(recipe, directory / RECIPE)
    (directory / STATISTICS).write_text(json_text(contents.statistics), encoding="utf-8")
    manifest = Manifest(
        name=recipe.name,
        version=recipe.version,
        builder=BuilderEntry(
            name=builder.name, distribution=builder.distribution, version=installed(builder.distribution)
        ),
        recipe=recipe_values(recipe),
        sources=list(contents.sources),
        tables=entries,
        ledger=LedgerEntry(path=LEDGER, calls=pq.read_metadata(directory / LEDGER).num_rows),
        provenance={path: file_digest(directory / path) for path in (*FILES, *recorded, *contents.files)},
        software={package: installed(package) for package in ("polars", "pyarrow", "pluralbench-release")},
    )
    card = contents.card.model_copy(update={"pretty_name": recipe.titled(contents.card.pretty_name)})
    write_card(directory, card, manifest, contents.tables, place=place or directory.resolve().name)
    (directory / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    write_checksums(directory, manifest)
    return manifest


def _check_names(directory: Path, contents: Contents, records: Iterable[str]) -> None:
    if not contents.tables:
        raise ReleaseError("There are no rows to release.")
    for table in contents.tables:
        check_path_name(table.config, "A config")
        check_split_name(table.split, f"A split of {table.config}")
    for path in (*records, *contents.files):
        safe_join(directory, path)
    ours = (CARD, MANIFEST, SUMS, *FILES)
    twice = repeated((*ours, *records, *contents.files, *(table.path for table in contents.tables)))
    if twice:
        raise ReleaseError(f"Two tables or files want to be {twice}; give each config and split once.")


def _write_table(directory: Path, table: ReleaseTable, content: str) -> TableEntry:
    path = safe_join(directory, table.path)
    write_parquet(table.frame, path)
    return TableEntry(
        config=table.config,
        split=table.split,
        path=table.path,
        table_schema=table.schema,
        rows=table.frame.height,
        digest=content,
        parquet_sha256=file_digest(path),
    )
