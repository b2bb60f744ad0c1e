"""Build a release again from its own recipe and recorded calls.

A release is untrusted. No code of it runs: it names its builder, which must be installed. Names in its recipe pass
`pluralbench_runs.check_path_name` before they become paths, and the recipe may name only local files below the current
folder (see `Rebuild.reads`).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pluralbench_runs import UserError, file_digest

from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing_file
from pluralbench_release.manifest import LEDGER, BuilderEntry, Manifest, Source, read_manifest
from pluralbench_release.recipe import RECIPE

BUILDERS = "pluralbench.builders"


@dataclass(frozen=True)
class Rebuild:
    """The plan of a rebuild: the recorded builder, and the version and entry point of the installed one, which runs."""

    recorded: BuilderEntry
    installed: str
    entry: EntryPoint


def rebuild_of(directory: Path) -> Rebuild:
    """Plan the rebuild of a release, without running anything.

    The builder is an entry point of the group `pluralbench.builders`, a function
    `(release: Path, out: Path, sources: Sequence[str]) -> None`. This package thus imports no builder.

    Raises:
        ReleaseError: The builder is not installed, or the recipe or the ledger does not match the manifest.
    """
    manifest = read_manifest(directory)
    recorded = manifest.builder
    entry = _installed_builder(recorded, directory)
    _check_inputs(directory, manifest)
    return Rebuild(recorded, entry.dist.version if entry.dist is not None else recorded.version, entry)


def rebuild(directory: Path, out: Path, *, sources: Sequence[str] = ()) -> list[TableDiff]:
    """Rebuild a release without asking a model, and compare the result with it, table by table.

    `sources` has the current locations of the sources, in the order of the manifest. Default: as in the recipe.

    Raises:
        ReleaseError: See `rebuild_of`; or a source is not at its location in the recipe.
    """
    plan = rebuild_of(directory)
    build = plan.entry.load()
    try:
        build(directory, out, list(sources))
    except UserError as error:
        files = [source.location for source in read_manifest(directory).sources if _has_moved(source)]
        if sources or not files:
            raise
        raise ReleaseError(
            f"{error} The release records only the names of {', '.join(files)}: set their locations, in the order of "
            "the manifest, with `sources=...`."
        ) from None
    return diff(directory, out)


def _installed_builder(builder: BuilderEntry, directory: Path) -> EntryPoint:
    for entry in entry_points(group=BUILDERS, name=builder.name):
        if entry.dist is None or entry.dist.name == builder.distribution:
            return entry
    raise ReleaseError(
        f"{directory} was built by {builder.distribution}, which is not installed; if you trust that package, install "
        f"{builder.distribution}=={builder.version}."
    )


def _check_inputs(directory: Path, manifest: Manifest) -> None:
    for path in (RECIPE, LEDGER):
        if manifest.provenance.get(path) != file_digest(existing_file(directory, path)):
            raise ReleaseError(
                f"{directory / path} does not match the manifest; run `pluralbench-release verify {directory}`."
            )


def _has_moved(source: Source) -> bool:
    path = source.location.rpartition(":")[2]
    return source.revision is None and source.location != "sample" and not os.path.lexists(path)
