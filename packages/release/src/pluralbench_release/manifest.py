"""The manifest of a release: its contents, its sources and their digests."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pluralbench_runs import PathName, RelativePath, SplitName, one_line, public_location
from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing_file, read_text
from pluralbench_release.recipe import ReleaseName

MANIFEST = "provenance/manifest.json"
LEDGER = "provenance/ledger.parquet"
STATISTICS = "provenance/statistics.json"
ROW_DIGESTS = "provenance/row_digests.parquet"
CARD = "README.md"
CHANGELOG = "CHANGELOG.md"
EVALUATION = "eval.yaml"
SUMS = "SHA256SUMS"

Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9.+!_-]+$", max_length=100)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Entry(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """Base class of the parts of a manifest: frozen, without unknown keys."""


class Source(Entry):
    """Where rows came from.

    location: the folders of the machine that built the release are taken from it (`pluralbench_runs.public_location`).
    revision: a commit for a Hub repository; None for files, which `digest` pins.
    digest: SHA-256 of the rows that were read, as canonical JSON.
    license: as the source states it (an SPDX-like Hub identifier), "unknown" where it states none.
    redistribution: why what was made from it may not be passed on, a sentence; None where it may.
    """

    name: str
    location: Annotated[str, AfterValidator(public_location)]
    revision: str | None = None
    digest: str
    rows: int
    license: str
    attribution: str
    redistribution: str | None = None


class BuilderEntry(Entry):
    """Who made the release: the entry point's name, the distribution that holds it and its version."""

    name: str
    distribution: ReleaseName
    version: Version


class TableEntry(Entry):
    """One file of rows.

    path: `data/CONFIG/SPLIT.parquet`. digest: SHA-256 over the canonical JSON of the rows sorted by id.
    """

    config: PathName
    split: SplitName
    path: str
    table_schema: str
    rows: Count
    digest: Sha256
    parquet_sha256: Sha256

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.path != table_path(self.config, self.split):
            raise ValueError(f"the path of {self.config}/{self.split} is {table_path(self.config, self.split)}")
        return self


class LedgerEntry(Entry):
    """The extract of the ledger: every recorded call that the rows depend on."""

    path: Literal["provenance/ledger.parquet"]
    calls: Count


class Manifest(Entry):
    """Everything that a release says about itself in numbers.

    version: of the release; publishing sets it to the version that it is published as, and the recipe keeps its own.
    provenance: SHA-256 of each other file, most of them in `provenance/`, by its path. software: versions of what
    wrote it.
    """

    format: Literal[1] = 1
    name: ReleaseName
    version: Version
    builder: BuilderEntry
    recipe: dict[str, Any]
    sources: list[Source]
    tables: Annotated[list[TableEntry], Field(min_length=1)]
    ledger: LedgerEntry
    provenance: dict[RelativePath, Sha256]
    software: dict[str, str]


def table_path(config: str, split: str) -> str:
    """Return the path of the rows of a config and split in a release."""
    return f"data/{config}/{split}.parquet"


@dataclass(frozen=True)
class Built:
    """A finished build: its directory, manifest, figures (JSON), and number of new calls."""

    directory: Path
    manifest: Manifest
    figures: dict[str, Any]
    new_calls: int


def json_text(values: object) -> str:
    """Format a JSON file of a release."""
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def manifest_text(manifest: Manifest) -> str:
    """Format a manifest as JSON."""
    return json_text(manifest.model_dump(mode="json"))


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a release directory. Raises `ReleaseError` if it is not a release."""
    if not os.path.lexists(directory / MANIFEST):
        raise ReleaseError(f"{directory} is not a release: it has no {MANIFEST}.")
    return load_manifest(existing_file(directory, MANIFEST))


def load_manifest(file: Path) -> Manifest:
    """Read a manifest file. Raises `ReleaseError` if it is not a manifest."""
    return parse_manifest(read_text(file), str(file))


def parse_manifest(text: str, name: str) -> Manifest:
    """Parse a manifest, called `name` in errors. Raises `ReleaseError` if it is not a manifest."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = one_line(first["msg"].removeprefix("Value error, "), 300)
        problem = f"`{key[:100]}`: {reason}" if key else reason
        raise ReleaseError(f"{name} is damaged or has another format version ({problem}).") from None
