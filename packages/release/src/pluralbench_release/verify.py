"""Hold a release against its own manifest and its list of digests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_runs import file_digest, parse_toml
from pluralbench_schemas import SCHEMAS, TableError, validate
from pluralbench_tables import TableFileError, iter_parquet
from polars.exceptions import PolarsError

from pluralbench_release.card import card_configs, read_card_configs
from pluralbench_release.checksums import pin_problems, read_checksums, release_files
from pluralbench_release.content import digests, in_order, read_rows, read_table
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import directory_contents, kind_of, shown, text_of
from pluralbench_release.leaks import leaks
from pluralbench_release.manifest import (
    CARD,
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
    """What does not hold in the release in `directory`, one sentence each; an empty list when all holds.

    Checks the bytes of each file by `SHA256SUMS` and the manifest; that no file is missing, none lies there that is
    not of the release (but for what git and the Hub's client put there, `files.LEFT_ALONE`), and none is a link; row
    counts, schemas and content digests (naming the first differing row), the calls that rows name, the recipe and the
    card against the manifest; and that no secret of this environment stands in a file.

    digest: what the release digest has to be, 64 hexadecimal digits; None is any.

    Raises `ReleaseError` when `directory` is no release.
    """
    manifest = read_manifest(directory)
    pinned = [] if digest is None else pin_problems(directory, digest)
    files = release_files(manifest)
    there, strange = directory_contents(directory)
    sums, wrong = read_checksums(directory, files)
    found = {path: file_digest(directory / path) for path in files if path in there}
    # Who records other bytes of a file than there are.
    records = {SUMS: sums, "the manifest": _recorded(manifest)}
    others = {
        path: " and ".join(who for who, recorded in records.items() if recorded.get(path, digest) != digest)
        for path, digest in found.items()
    }
    problems = [*pinned, *strange, *_wrong_files(directory, files, there), *wrong]
    problems += _provenance_problems(directory, manifest, others)
    ledger = None
    if others.get(LEDGER) == "":
        try:
            ledger = _ledger(directory, manifest)
        except ReleaseError as error:
            problems.append(str(error))
    for entry in manifest.tables:
        if entry.path in found:
            problems += _table_problems(directory, entry, ledger, others[entry.path])
    if CARD in found:
        problems += _card_problems(directory, manifest)
    return problems + leaks(directory, there, manifest.recipe)


def _recorded(manifest: Manifest) -> dict[str, str]:
    """The digests of bytes that a manifest records, by path."""
    return manifest.provenance | {table.path: table.parquet_sha256 for table in manifest.tables}


def _wrong_files(directory: Path, files: Sequence[str], there: Sequence[str]) -> list[str]:
    """A sentence for each file that is not there, and for each that should not be."""
    kinds = {path: kind_of(directory / path) for path in files if path not in there}
    problems = [
        f"{path} is a folder, where the release has a file." if kind == "folder" else f"{path} is missing."
        for path, kind in kinds.items()
        if kind in {None, "folder"}  # of the others `directory_contents` speaks
    ]
    more = [path for path in there if path not in {*files, SUMS}]
    return problems + [f"{shown(path)} is not of this release: its manifest does not name it." for path in more]


def _provenance_problems(directory: Path, manifest: Manifest, others: Mapping[str, str]) -> list[str]:
    """What does not hold in the files that are not tables. others: who records other bytes of a file, by its path."""
    tables = {table.path for table in manifest.tables}
    problems = [
        f"{path} is not the file that {who} record{'' if ' and ' in who else 's'}."
        for path, who in others.items()
        if who and path not in tables
    ]
    problems += [
        f"{path} has no digest in the manifest."
        for path in (RECIPE, LEDGER, STATISTICS, ROW_DIGESTS)
        if path not in manifest.provenance
    ]
    if others.get(RECIPE) == "" and _recipe(directory) != manifest.recipe:
        problems.append(f"{RECIPE} and the recipe in the manifest differ.")
    return problems


def _recipe(directory: Path) -> object:
    """What the recipe says; None for no TOML."""
    try:
        return parse_toml(text_of(directory / RECIPE))
    except (ReleaseError, ValueError):
        return None


def _ledger(directory: Path, manifest: Manifest) -> set[str]:
    """The keys of the recorded calls. Raises `ReleaseError` for no ledger, or for another number of calls."""
    keys: set[str] = set()
    calls = 0
    try:
        for part in iter_parquet(directory / LEDGER, ["key"]):
            if part.schema["key"] not in ({pl.String} if part.height else {pl.String, pl.Null}):
                raise ReleaseError(f"{LEDGER} is no ledger.")
            calls += part.height
            keys.update(part["key"])
    except TableFileError:
        raise ReleaseError(f"{LEDGER} is no ledger.") from None
    if calls != manifest.ledger.calls:
        raise ReleaseError(f"{LEDGER} holds {calls:,} calls where the manifest says {manifest.ledger.calls:,}.")
    return keys


def _table_problems(directory: Path, entry: TableEntry, ledger: set[str] | None, other: str) -> list[str]:
    """What does not hold in one table.

    ledger: the keys of the recorded calls, None where they cannot be trusted. other: who records other bytes.
    """
    try:
        frame = read_rows(directory / entry.path, entry.path)
        content, rows = digests(frame)
    except ReleaseError as error:
        said = str(error)
        return [said if entry.path in said else f"{entry.path}: {said}"]
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
    elif other:
        many = "" if " and " in other else "s"
        problems.append(f"{entry.path} has other bytes than {other} record{many}, and the same content.")
    return problems + ([] if ledger is None else _lost_calls(entry, frame, ledger))


def _first_differing_row(directory: Path, entry: TableEntry, frame: pl.DataFrame, found: dict[str, str]) -> str:
    twice = frame.filter(frame["id"].is_duplicated())
    if twice.height:
        return f"first in the row of id {twice['id'][0]!r}, which is there more than once"
    try:
        recorded = read_table(directory / ROW_DIGESTS, ROW_DIGESTS).filter(config=entry.config, split=entry.split)
        expected = dict(recorded.select(pl.col("id", "digest").cast(pl.String)).iter_rows())
        ids = in_order(expected.keys() | found.keys(), frame)
    except (ReleaseError, PolarsError, ValueError):
        return f"and {ROW_DIGESTS} cannot be read to say where"
    for row_id in ids:
        if expected.get(row_id) != found.get(row_id):
            what = "gone" if row_id not in found else "new" if row_id not in expected else "changed"
            return f"first in the row of id {row_id!r}, which is {what}"
    return f"though each row agrees with {ROW_DIGESTS}"


def _lost_calls(entry: TableEntry, frame: pl.DataFrame, ledger: set[str]) -> list[str]:
    problems = []
    for column, kind in frame.schema.items():
        if not column.endswith(("_call", "_calls")) or kind not in {pl.String, pl.List(pl.String)}:
            continue  # of another type the schema speaks
        keys = frame.select("id", column)
        keys = keys.explode(column) if kind == pl.List(pl.String) else keys
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
    try:
        named = read_card_configs(directory)
    except ReleaseError as error:
        return [str(error)]
    # Compared one by one: a stranger's path may be of a kind that no set holds.
    pairs = [pair for pair in expected.keys() | named.keys() if expected.get(pair) != named.get(pair)]
    if not pairs:
        return []
    differing = ", ".join(shown("/".join(pair)) for pair in sorted(pairs))
    return [f"The card's `configs:` and the manifest differ in {differing}."]
