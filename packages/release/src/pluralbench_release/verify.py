"""Hold a release against its own manifest."""

from pathlib import Path

import polars as pl
from pluralbench_schemas import SCHEMAS, TableError, validate
from polars.exceptions import PolarsError

from pluralbench_release.card import card_configs, read_card_configs
from pluralbench_release.content import content_digest, file_digest, row_digests
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import ROW_DIGESTS, Manifest, TableEntry, read_manifest


def verify(directory: Path) -> list[str]:
    """What does not hold in the release in `directory`, one sentence each; an empty list when all holds.

    Checks row counts, schemas and content digests (naming the first differing row), the calls that rows name, the
    ledger's digest, files against the manifest, and the card against the files. Bytes of Parquet files may drift
    with library versions as long as the content is the same.

    Raises `ReleaseError` when `directory` is no release.
    """
    manifest = read_manifest(directory)
    problems: list[str] = []
    for entry in manifest.tables:
        problems += _table_problems(directory, entry)
    return problems + _ledger_problems(directory, manifest) + _card_problems(directory, manifest)


def _read(path: Path) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(path)
    except (PolarsError, OSError):
        return None


def _table_problems(directory: Path, entry: TableEntry) -> list[str]:
    if not (directory / entry.path).is_file():
        return [f"{entry.path} is missing."]
    frame = _read(directory / entry.path)
    if frame is None:
        return [f"{entry.path} cannot be read as Parquet."]
    problems = []
    if entry.table_schema not in SCHEMAS:
        problems.append(f"{entry.path}: this version knows no schema {entry.table_schema!r}.")
    else:
        try:
            validate(frame, SCHEMAS[entry.table_schema], file=entry.path, rows=entry.rows)
        except TableError as error:
            problems.append(str(error))
    has_ids = "id" in frame.columns and frame["id"].dtype == pl.String and frame["id"].null_count() == 0
    if has_ids and content_digest(frame) != entry.digest:
        problems.append(f"{entry.path}: {_first_differing_row(directory, entry, frame)}")
    return problems


def _first_differing_row(directory: Path, entry: TableEntry, frame: pl.DataFrame) -> str:
    recorded = _read(directory / ROW_DIGESTS)
    if recorded is None:
        return f"the content differs from its digest, and {ROW_DIGESTS} cannot be read to say where."
    mine = recorded.filter(config=entry.config, split=entry.split)
    expected = dict(zip(mine["id"], mine["digest"], strict=True))
    found = row_digests(frame)
    if frame["id"].is_duplicated().any():
        return (
            f"the content differs from its digest: id {frame.filter(frame['id'].is_duplicated())['id'][0]!r} is twice."
        )
    for row_id in sorted(expected.keys() | found.keys()):
        if row_id not in found:
            return f"the content differs from its digest, first in the row of id {row_id!r}, which is gone."
        if row_id not in expected:
            return f"the content differs from its digest, first in the row of id {row_id!r}, which is new."
        if expected[row_id] != found[row_id]:
            return f"the content differs from its digest, first in the row of id {row_id!r}, which is changed."
    return f"the content differs from its digest, though each row agrees with {ROW_DIGESTS}."


def _ledger_problems(directory: Path, manifest: Manifest) -> list[str]:
    path = manifest.ledger.path
    if not (directory / path).is_file():
        return [f"{path} is missing."]
    if file_digest(directory / path) != manifest.ledger.digest:
        return [f"{path} is not the file that the manifest records."]
    ledger = _read(directory / path)
    if ledger is None or "key" not in ledger.columns:
        return [f"{path} is no ledger."]
    problems = []
    for entry in manifest.tables:
        frame = _read(directory / entry.path)
        if frame is not None:
            problems += _lost_calls(entry, frame, set(ledger["key"]), path)
    return problems


def _lost_calls(entry: TableEntry, frame: pl.DataFrame, known: set[str], ledger: str) -> list[str]:
    problems = []
    for column in [name for name in frame.columns if name.endswith("_call")]:
        lost = [row_id for row_id, key in frame.select("id", column).iter_rows() if key not in known]
        if lost:
            problems.append(
                f"{entry.path}: `{column}` of id {lost[0]!r} names a call that {ledger} does not hold "
                f"({len(lost)} such rows)."
            )
    return problems


def _card_problems(directory: Path, manifest: Manifest) -> list[str]:
    try:
        named = read_card_configs(directory)
    except ReleaseError as error:
        return [str(error)]
    problems = []
    expected = {
        (config["config_name"], file["split"]): file["path"]
        for config in card_configs(manifest.tables)
        for file in config["data_files"]
    }
    if named != expected:
        differing = sorted({"/".join(pair) for pair, _ in named.items() ^ expected.items()})
        problems.append(f"The card's `configs:` and the manifest differ in {', '.join(differing)}.")
    on_disk = {path.relative_to(directory).as_posix() for path in (directory / "data").rglob("*") if path.is_file()}
    problems += [f"{path} is in no manifest." for path in sorted(on_disk - set(expected.values()))]
    return problems
