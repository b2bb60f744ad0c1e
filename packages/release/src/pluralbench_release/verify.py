"""Hold a release against its own manifest."""

from pathlib import Path

import polars as pl
from pluralbench_runs import file_digest
from pluralbench_schemas import SCHEMAS, TableError, validate
from polars.exceptions import PolarsError

from pluralbench_release.card import card_configs, read_card_configs
from pluralbench_release.content import digests, in_order, read_rows
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import RECIPE, ROW_DIGESTS, Manifest, TableEntry, read_manifest


def verify(directory: Path) -> list[str]:
    """What does not hold in the release in `directory`, one sentence each; an empty list when all holds.

    Checks row counts, schemas and content digests (naming the first differing row), the calls that rows name, the
    files in `provenance/`, files against the manifest, and the card against the files. Bytes of the tables may drift
    with library versions as long as the content is the same.

    Raises `ReleaseError` when `directory` is no release.
    """
    manifest = read_manifest(directory)
    problems = _provenance_problems(directory, manifest)
    ledger = None if problems else set(pl.read_parquet(directory / manifest.ledger.path, glob=False)["key"])
    for entry in manifest.tables:
        problems += _table_problems(directory, entry, ledger)
    return problems + _card_problems(directory, manifest)


def _provenance_problems(directory: Path, manifest: Manifest) -> list[str]:
    problems = []
    for path, digest in manifest.provenance.items():
        if not (directory / path).is_file():
            problems.append(f"{path} is missing.")
        elif file_digest(directory / path) != digest:
            problems.append(f"{path} is not the file that the manifest records.")
    problems += [
        f"{path} has no digest in the manifest."
        for path in (RECIPE, manifest.ledger.path, ROW_DIGESTS)
        if path not in manifest.provenance
    ]
    if problems:
        return problems
    try:
        ledger = pl.scan_parquet(directory / manifest.ledger.path, glob=False).select("key").collect()
    except (PolarsError, OSError):
        return [f"{manifest.ledger.path} is no ledger."]
    if ledger.height != manifest.ledger.calls:
        return [
            f"{manifest.ledger.path} holds {ledger.height:,} calls where the manifest says {manifest.ledger.calls:,}."
        ]
    return []


def _table_problems(directory: Path, entry: TableEntry, ledger: set[str] | None) -> list[str]:
    """What does not hold in one table. ledger: the keys of the recorded calls, None where they cannot be trusted."""
    if not (directory / entry.path).is_file():
        return [f"{entry.path} is missing."]
    try:
        frame = read_rows(directory / entry.path, entry.path)
        content, rows = digests(frame)
    except ReleaseError as error:
        return [str(error)]
    problems = []
    if entry.table_schema not in SCHEMAS:
        problems.append(f"{entry.path}: this version knows no schema {entry.table_schema!r}.")
    else:
        try:
            validate(frame, SCHEMAS[entry.table_schema], file=entry.path, rows=entry.rows)
        except TableError as error:
            problems.append(str(error))
    if content != entry.digest:
        where = _first_differing_row(directory, entry, frame, rows)
        problems.append(f"{entry.path}: the content differs from its digest, {where}.")
    return problems + ([] if ledger is None else _lost_calls(entry, frame, ledger))


def _first_differing_row(directory: Path, entry: TableEntry, frame: pl.DataFrame, found: dict[str, str]) -> str:
    twice = frame.filter(frame["id"].is_duplicated())
    if twice.height:
        return f"first in the row of id {twice['id'][0]!r}, which is there more than once"
    try:
        recorded = pl.read_parquet(directory / ROW_DIGESTS, glob=False).filter(config=entry.config, split=entry.split)
        expected = dict(zip(recorded["id"], recorded["digest"], strict=True))
    except (PolarsError, OSError):
        return f"and {ROW_DIGESTS} cannot be read to say where"
    for row_id in in_order(expected.keys() | found.keys(), frame):
        if expected.get(row_id) != found.get(row_id):
            what = "gone" if row_id not in found else "new" if row_id not in expected else "changed"
            return f"first in the row of id {row_id!r}, which is {what}"
    return f"though each row agrees with {ROW_DIGESTS}"


def _lost_calls(entry: TableEntry, frame: pl.DataFrame, ledger: set[str]) -> list[str]:
    problems = []
    for column in [name for name in frame.columns if name.endswith(("_call", "_calls"))]:
        keys = frame.select("id", column).explode(column) if column.endswith("s") else frame.select("id", column)
        lost = [row_id for row_id, key in keys.drop_nulls().iter_rows() if key not in ledger]
        if lost:
            problems.append(
                f"{entry.path}: `{column}` of id {lost[0]!r} names a call that the ledger does not hold "
                f"({len(lost)} in all)."
            )
    return problems


def _card_problems(directory: Path, manifest: Manifest) -> list[str]:
    expected = {
        (config["config_name"], file["split"]): file["path"]
        for config in card_configs(manifest.tables)
        for file in config["data_files"]
    }
    problems = []
    try:
        named = read_card_configs(directory)
    except ReleaseError as error:
        problems.append(str(error))
    else:
        if named != expected:
            differing = sorted({"/".join(pair) for pair, _ in named.items() ^ expected.items()})
            problems.append(f"The card's `configs:` and the manifest differ in {', '.join(differing)}.")
    on_disk = {path.relative_to(directory).as_posix() for path in (directory / "data").rglob("*") if path.is_file()}
    return problems + [f"{path} is in no manifest." for path in sorted(on_disk - set(expected.values()))]
