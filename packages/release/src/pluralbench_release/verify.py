"""Hold a release against its own manifest and its list of digests."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_runs import file_digest
from pluralbench_schemas import SCHEMAS, TableError, validate

from pluralbench_release.card import card_configs, read_card_configs
from pluralbench_release.checksums import Sums, pin_problems, read_sums, release_files
from pluralbench_release.content import digests, in_order, read_rows, read_table
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import held, shown, text_of
from pluralbench_release.leaks import leaks
from pluralbench_release.manifest import CARD, LEDGER, RECIPE, ROW_DIGESTS, SUMS, Manifest, TableEntry, read_manifest


def verify(directory: Path, *, digest: str | None = None) -> list[str]:
    """What does not hold in the release in `directory`, one sentence each; an empty list when all holds.

    Checks the bytes of each file by `SHA256SUMS` and the manifest; that no file is missing, none lies there that is
    not of the release (but for what git and the Hub's client put there, `files.LEFT_ALONE`), and none is a link; row
    counts, schemas and content digests (naming the first differing row), the calls that rows name, the recipe and the
    card against the manifest; and that no secret of this environment stands in a file.

    digest: what the release digest has to be, 64 hexadecimal digits; None is any.

    Raises `ReleaseError` when `directory` is no release.
    """
    pinned = [] if digest is None else pin_problems(directory, digest)
    manifest = read_manifest(directory)
    files = release_files(manifest)
    there = held(directory)
    sums = read_sums(directory, files)
    found = {path: file_digest(directory / path) for path in files if path in there.files}
    problems = [*pinned, *there.strange, *_missing(directory, files, there.files), *sums.problems]
    problems += _changed(found, sums, manifest)
    if LEDGER in found and RECIPE in found:
        problems += _recipe_problems(directory, manifest)
    ledger = _ledger(directory, manifest) if manifest.provenance.get(LEDGER) == found.get(LEDGER) else None
    problems += _ledger_problems(ledger, manifest)
    for entry in manifest.tables:
        if entry.path in found:
            problems += _table_problems(directory, entry, ledger, _recorders(entry.path, found, sums, manifest))
    if CARD in found:
        problems += _card_problems(directory, manifest)
    problems += leaks(directory, there.files, manifest.recipe)
    return list(dict.fromkeys(problems))
