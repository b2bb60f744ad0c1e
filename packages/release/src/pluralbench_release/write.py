"""Write tables as a release, a dataset directory in the layout of a Hub repository."""

import shutil
from collections import Counter
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
from pluralbench_release.evaluation import OVERALL, evaluation_text
from pluralbench_release.manifest import (
    CARD,
    EVALUATION,
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
)
from pluralbench_release.recipe import RECIPE, ReleaseRecipe

FILES = (RECIPE, LEDGER, STATISTICS, ROW_DIGESTS)


@dataclass(frozen=True)
class Builder:
    """The builder of a release, by its entry point (group `pluralbench.builders`) and its distribution."""

    name: str
    distribution: str


@dataclass(frozen=True)
class Contents:
    """The contents of a release.

    `records` are further tables by name, such as dropped rows with reasons, written to `provenance/NAME.parquet`.
    `files` are copied, by path in the release, such as the rows in another format.
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
    load_name: str | None = None,
) -> Manifest:
    """Write a release to an empty directory, with a copy of the Parquet file of its calls, and return its manifest.

    The card's example loads the release by `load_name`. Default: the name of the directory.

    Raises:
        pluralbench_schemas.TableError: Rows break their schema.
        ReleaseError: There are no tables, two tables or files have the same path, or two scored tables have one config
            or the name of the overall number.
        pluralbench_runs.UserError: The name of a config, split, record or file cannot be part of a path.
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
    card = contents.card.model_copy(update={"pretty_name": recipe.display_title(contents.card.pretty_name)})
    scored = [table for table in contents.tables if table.scored]
    if scored:
        text = evaluation_text(card.pretty_name, card.summary, scored)
        (directory / EVALUATION).write_text(text, encoding="utf-8")
    files = [*([EVALUATION] if scored else []), *FILES, *recorded, *contents.files]
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
        provenance={path: file_digest(directory / path) for path in files},
        software={package: installed(package) for package in ("polars", "pyarrow", "pluralbench-release")},
    )
    write_card(directory, card, manifest, contents.tables, load_name=load_name or directory.resolve().name)
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
    reserved = (CARD, MANIFEST, SUMS, EVALUATION, *FILES)
    paths = (*reserved, *records, *contents.files, *(table.path for table in contents.tables))
    # Some file systems ignore case.
    [(duplicate, count)] = Counter(path.casefold() for path in paths).most_common(1)
    if count > 1:
        raise ReleaseError(f"Two tables or files have the path {duplicate}; use each config and split once.")
    tasks = Counter([OVERALL, *(table.config for table in contents.tables if table.scored)])
    [(duplicate, count)] = tasks.most_common(1)
    if count > 1:
        raise ReleaseError(
            f"Two tasks of {EVALUATION} are called {duplicate}; models are scored on one split of a config, and "
            f"`{OVERALL}` is the overall number."
        )


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
