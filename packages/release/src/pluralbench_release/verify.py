"""Verify a release against its own manifest and list of digests."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
from pluralbench_runs import file_digest, parse_toml
from pluralbench_schemas import SCHEMAS, TableError, validate
from pluralbench_tables import TableFileError, iter_parquet
from polars.exceptions import PolarsError

from pluralbench_release.card import card_configs, read_card_configs
from pluralbench_release.checksums import pin_problems, read_checksums, release_files
from pluralbench_release.content import digests, read_rows, read_table, sort_ids
from pluralbench_release.errors import ReleaseError
from pluralbench_release.evaluation import evaluation_problems
from pluralbench_release.files import directory_contents, read_text
from pluralbench_release.leaks import leaks
from pluralbench_release.manifest import (
    CARD,
    EVALUATION,
    LEDGER,
    ROW_DIGESTS,
    STATISTICS,
    SUMS,
    Manifest,
    TableEntry,
    read_manifest,
)
from pluralbench_release.recipe import RECIPE


def verify(directory: Path, *, digest: str | None = None) -> list[str]:
    """Check a release for changed, missing and foreign files, and for contents that contradict its manifest.

    Checks the bytes of each file by `SHA256SUMS` and the manifest; missing files, foreign files (except those of git
    and the Hub's client, see `files.IGNORED`) and links; row counts, schemas and content digests (with the first
    differing row); the calls that rows name; the recipe, the card and `eval.yaml` against the manifest; and secrets of
    this environment. `digest` is a required release digest.

    Returns:
        One sentence per problem; an empty list if there is none.

    Raises:
        ReleaseError: The directory is not a release.
    """
    manifest = read_manifest(directory)
    digest_problems = [] if digest is None else pin_problems(directory, digest)
    files = release_files(manifest)
    known = {*files, SUMS}
    present, links = directory_contents(directory)
    sums, sums_problems = read_checksums(directory, files)
    actual = {path: file_digest(directory / path) for path in files if path in present}
    # The records that have other digests of a file, joined by "and".
    in_manifest = manifest.provenance | {table.path: table.parquet_sha256 for table in manifest.tables}
    records = {SUMS: sums, "the manifest": in_manifest}
    mismatches = {
        path: " and ".join(name for name, recorded in records.items() if recorded.get(path, digest) != digest)
        for path, digest in actual.items()
    }
    problems = [
        *digest_problems,
        *(f"{path} is a link; replace it with the file itself." for path in links),
        *(f"{path} is missing." for path in files if path not in {*present, *links}),
        *(f"{path} does not belong to this release: its manifest lacks it." for path in present if path not in known),
        *sums_problems,
    ]
    problems += _provenance_problems(directory, manifest, mismatches)
    ledger = None
    if mismatches.get(LEDGER) == "":
        try:
            ledger = _ledger_keys(directory, manifest)
        except ReleaseError as error:
            problems.append(str(error))
    for entry in manifest.tables:
        if entry.path in actual:
            problems += _table_problems(directory, entry, ledger, mismatches[entry.path])
    if CARD in actual:
        problems += _card_problems(directory, manifest)
    if EVALUATION in actual:
        problems += evaluation_problems(directory, manifest)
    return problems + leaks(directory, present, manifest.recipe)


def _provenance_problems(directory: Path, manifest: Manifest, mismatches: Mapping[str, str]) -> list[str]:
    tables = {table.path for table in manifest.tables}
    problems = [
        f"{path} does not match {records}." for path, records in mismatches.items() if records and path not in tables
    ]
    problems += [
        f"{path} has no digest in the manifest."
        for path in (RECIPE, LEDGER, STATISTICS, ROW_DIGESTS)
        if path not in manifest.provenance
    ]
    if mismatches.get(RECIPE) == "" and _read_recipe(directory) != manifest.recipe:
        problems.append(f"{RECIPE} and the recipe in the manifest differ.")
    return problems


def _read_recipe(directory: Path) -> object:
    try:
        return parse_toml(read_text(directory / RECIPE))
    except (ReleaseError, ValueError):
        return None


def _ledger_keys(directory: Path, manifest: Manifest) -> set[str]:
    keys: set[str] = set()
    calls = 0
    try:
        for part in iter_parquet(directory / LEDGER, ["key"]):
            if part.schema["key"] not in ({pl.String} if part.height else {pl.String, pl.Null}):
                raise ReleaseError(f"{LEDGER} is not a ledger.")
            calls += part.height
            keys.update(part["key"])
    except TableFileError:
        raise ReleaseError(f"{LEDGER} is not a ledger.") from None
    if calls != manifest.ledger.calls:
        raise ReleaseError(f"{LEDGER} has {calls:,} calls, but the manifest has {manifest.ledger.calls:,}.")
    return keys


def _table_problems(directory: Path, entry: TableEntry, ledger: set[str] | None, mismatch: str) -> list[str]:
    """Problems of one table. `mismatch`: the records that have other digests of the file, joined by "and"."""
    try:
        frame = read_rows(directory / entry.path, entry.path)
        content, rows = digests(frame)
    except ReleaseError as error:
        message = str(error)
        return [message if entry.path in message else f"{entry.path}: {message}"]
    problems = []
    if entry.table_schema not in SCHEMAS:
        problems.append(f"{entry.path}: the schema {entry.table_schema!r} is unknown to this version.")
    else:
        try:
            validate(frame, SCHEMAS[entry.table_schema], file=entry.path, rows=entry.rows)
        except TableError as error:
            problems.append(str(error))
    if content != entry.digest:
        where = _first_differing_row(directory, entry, frame, rows)
        problems.append(f"{entry.path}: the content differs from its digest, {where}.")
    elif mismatch:
        problems.append(f"{entry.path} has the recorded content, but its bytes do not match {mismatch}.")
    return problems + ([] if ledger is None else _unrecorded_calls(entry, frame, ledger))


def _first_differing_row(directory: Path, entry: TableEntry, frame: pl.DataFrame, actual: dict[str, str]) -> str:
    duplicates = frame.filter(frame["id"].is_duplicated())
    if duplicates.height:
        return f"first in the row with id {duplicates['id'][0]!r}, which occurs more than once"
    try:
        recorded = read_table(directory / ROW_DIGESTS, ROW_DIGESTS).filter(config=entry.config, split=entry.split)
        expected = dict(recorded.select(pl.col("id", "digest").cast(pl.String)).iter_rows())
        ids = sort_ids(expected.keys() | actual.keys(), frame)
    except (ReleaseError, PolarsError, ValueError):
        return f"and {ROW_DIGESTS} cannot be read to find the row"
    for row_id in ids:
        if expected.get(row_id) != actual.get(row_id):
            change = "missing" if row_id not in actual else "new" if row_id not in expected else "changed"
            return f"first in the row with id {row_id!r}, which is {change}"
    return f"although all rows match {ROW_DIGESTS}"


def _unrecorded_calls(entry: TableEntry, frame: pl.DataFrame, ledger: set[str]) -> list[str]:
    problems = []
    for column, kind in frame.schema.items():
        if not column.endswith(("_call", "_calls")) or kind not in {pl.String, pl.List(pl.String)}:
            continue  # the schema reports other types
        keys = frame.select("id", column)
        keys = keys.explode(column) if kind == pl.List(pl.String) else keys
        missing = [row_id for row_id, key in keys.drop_nulls().iter_rows() if key not in ledger]
        if missing:
            problems.append(
                f"{entry.path}: `{column}` of id {missing[0]!r} names a call that is not in the ledger "
                f"({len(missing)} in total)."
            )
    return problems


def _card_problems(directory: Path, manifest: Manifest) -> list[str]:
    expected = {
        (config["config_name"], file["split"]): file["path"]
        for config in card_configs(manifest.tables)
        for file in config["data_files"]
    }
    try:
        listed = read_card_configs(directory)
    except ReleaseError as error:
        return [str(error)]
    pairs = [pair for pair in expected.keys() | listed.keys() if expected.get(pair) != listed.get(pair)]
    if not pairs:
        return []
    differing = ", ".join("/".join(pair) for pair in sorted(pairs))
    return [f"The card's `configs:` and the manifest differ in {differing}."]
