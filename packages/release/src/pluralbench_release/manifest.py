"""The manifest of a release: what it holds, what it was made from, and the digests that prove both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pluralbench_runs import public_place
from pydantic import AfterValidator, BaseModel, ValidationError

from pluralbench_release.errors import ReleaseError

MANIFEST = "provenance/manifest.json"
RECIPE = "provenance/recipe.toml"
LEDGER = "provenance/ledger.parquet"
STATISTICS = "provenance/statistics.json"
ROW_DIGESTS = "provenance/row_digests.parquet"
CARD = "README.md"


class Entry(BaseModel, frozen=True, extra="forbid"):
    """A part of what a release says about itself: frozen, and an unknown key is an error."""


class Source(Entry):
    """Where rows came from.

    location: the folders of the machine that built the release are taken from it (`pluralbench_runs.public_place`).
    revision: a commit for a Hub repository; None for files, which `digest` pins.
    digest: SHA-256 of the rows that were read, as canonical JSON.
    licence: as the source states it (an SPDX-like Hub identifier), "unknown" where it states none.
    redistribution: why what was made from it may not be passed on, a sentence; None where it may.
    """

    name: str
    location: Annotated[str, AfterValidator(public_place)]
    revision: str | None = None
    digest: str
    rows: int
    licence: str
    attribution: str
    redistribution: str | None = None


class BuilderEntry(Entry):
    """Who made the release: the entry point's name, the distribution that holds it and its version."""

    name: str
    distribution: str
    version: str


class TableEntry(Entry):
    """One file of rows. digest: SHA-256 over the canonical JSON of the rows sorted by id."""

    config: str
    split: str
    path: str
    table_schema: str
    rows: int
    digest: str
    parquet_sha256: str


class LedgerEntry(Entry):
    """The extract of the ledger: every recorded call that the rows depend on."""

    path: str
    calls: int


class Manifest(Entry):
    """Everything that a release says about itself in numbers.

    provenance: SHA-256 of each other file, most of them in `provenance/`, by its path. software: versions of what
    wrote it.
    """

    format: Literal[1] = 1
    name: str
    version: str
    builder: BuilderEntry
    recipe: dict[str, Any]
    sources: list[Source]
    tables: list[TableEntry]
    ledger: LedgerEntry
    provenance: dict[str, str]
    software: dict[str, str]


@dataclass(frozen=True)
class Built:
    """A finished build: its manifest, its figures (JSON), and how many calls were made anew."""

    manifest: Manifest
    figures: dict[str, Any]
    new_calls: int


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the release in `directory`. Raises `ReleaseError` when it is no release."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ReleaseError(f"{directory} is no release: it has no {MANIFEST}.") from None
    except (ValidationError, UnicodeDecodeError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise ReleaseError(f"{path} is damaged or of another format version ({first}).") from None
