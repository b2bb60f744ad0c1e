"""Build a release again from its own recipe and recorded calls.

A release may be a stranger's. Nothing that it holds is run: it names its builder, and only one that is installed here
runs. Its recipe is not trusted either: its names pass `pluralbench_runs.check_path_name` before they become paths, and
the only files of this machine that it may name are below the current folder (see `Rebuild.reads`).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pluralbench_runs import UserError, parse_toml, public_location
from pluralbench_runs.locations import KIND
from pluralbench_runs.toml_files import leaves

from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing, existing_digest, shown, text_of
from pluralbench_release.manifest import LEDGER, BuilderEntry, Manifest, Source, read_manifest
from pluralbench_release.recipe import RECIPE

BUILDERS = "pluralbench.builders"
MISSING = "missing"  # the key of words that stand for a missing value
ADDRESSES = ("http://", "https://")


@dataclass(frozen=True)
class Rebuild:
    """What `rebuild` runs for a release.

    recorded: who built the release. installed: the version of that builder here, which is the one that runs. reads:
    what of this machine the recipe names and the builder may read, as the recipe has it; each is below the current
    folder. Not in it is what the installed builder brings along, and what `sources` name.
    """

    recorded: BuilderEntry
    installed: str
    entry: EntryPoint
    reads: list[str]


def rebuild_of(directory: Path) -> Rebuild:
    """What rebuilding the release in `directory` would run and read; nothing runs yet.

    The builder is found by its entry point in the group `pluralbench.builders`, a function
    `(release: Path, out: Path, sources: Sequence[str]) -> None`, so this package imports no builder.

    Raises `ReleaseError` when that builder is not installed, when the recipe or the ledger is not the file that the
    manifest records, and for a recipe that names a file outside the current folder, as none that a build writes does.
    """
    manifest = read_manifest(directory)
    recorded = manifest.builder
    entry = _installed(recorded, directory)
    _check_inputs(directory, manifest)
    # What may be a place: keys are none, nor what stands for a missing value, such as ".".
    texts = {text for place, text in leaves(_recipe(directory)) if isinstance(text, str) and MISSING not in place}
    named = sorted(texts)
    outside = next((text for text in named if not text.startswith(ADDRESSES) and public_location(text) != text), None)
    if outside is not None:
        raise ReleaseError(
            f"{directory / RECIPE} names {outside!r}, outside the current folder. No build writes such a recipe, so "
            "somebody changed it; it is not rebuilt."
        )
    here = [shown(text) for text in named if os.path.lexists(KIND.sub("", text, count=1))]
    return Rebuild(recorded, entry.dist.version if entry.dist is not None else recorded.version, entry, here)


def rebuild(directory: Path, out: Path, *, sources: Sequence[str] = ()) -> list[TableDiff]:
    """Rebuild the release in `directory` into `out`, asking no model, and return what differs.

    sources: where the sources are now, if not where the recipe says.

    Raises `ReleaseError` as `rebuild_of` does, and for files that are not where the recipe says.
    """
    planned = rebuild_of(directory)
    build = planned.entry.load()
    try:
        build(directory, out, list(sources))
    except UserError as error:
        files = [source.location for source in read_manifest(directory).sources if _elsewhere(source)]
        if sources or not files:
            raise
        raise ReleaseError(
            f"{error} The release says of {', '.join(files)} no more than the name: say with `sources` (--source) "
            "where each source is here, in the order of the manifest."
        ) from None
    return diff(directory, out)


def _installed(builder: BuilderEntry, directory: Path) -> EntryPoint:
    for entry in entry_points(group=BUILDERS, name=builder.name):
        if entry.dist is None or entry.dist.name == builder.distribution:
            return entry
    raise ReleaseError(
        f"{directory} was built by {builder.distribution}, which is not installed here, and only installed builders "
        f"run; if you trust that package, install {builder.distribution}=={builder.version}."
    )


def _check_inputs(directory: Path, manifest: Manifest) -> None:
    for path in (RECIPE, LEDGER):
        if manifest.provenance.get(path) != existing_digest(directory, path):
            raise ReleaseError(
                f"{directory / path} is not the file that the manifest records; run `pluralbench-release verify "
                f"{directory}`."
            )


def _recipe(directory: Path) -> Mapping[str, object]:
    try:
        return parse_toml(text_of(existing(directory, RECIPE)))
    except ValueError:
        raise ReleaseError(f"{directory / RECIPE} is no recipe: it is not valid TOML.") from None


def _elsewhere(source: Source) -> bool:
    """Whether a source is files of somebody's machine that are not where the manifest says."""
    path = source.location.rpartition(":")[2]
    return source.revision is None and source.location != "sample" and not os.path.lexists(path)
