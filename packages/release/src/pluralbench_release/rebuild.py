"""Build a release again from its own recipe and recorded calls."""

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from pluralbench_runs import UserError

from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import Source, read_manifest

BUILDERS = "pluralbench.builders"


def rebuild(directory: Path, out: Path, *, sources: Sequence[str] = ()) -> list[TableDiff]:
    """Rebuild the release in `directory` into `out`, asking no model, and return what differs.

    sources: where the sources are now, if not where the recipe says.

    The builder is found by its entry point in the group `pluralbench.builders`, a function
    `(release: Path, out: Path, sources: Sequence[str]) -> None`, so this package imports no builder.

    Raises `ReleaseError` when that builder is not installed, and for files that are not where the recipe says.
    """
    manifest = read_manifest(directory)
    builder = manifest.builder
    found = entry_points(group=BUILDERS, name=builder.name)
    if not found:
        raise ReleaseError(
            f"{directory} was built by {builder.distribution}, which is not installed here; "
            f"install {builder.distribution}=={builder.version}."
        )
    build = next(iter(found)).load()
    try:
        build(directory, out, list(sources))
    except UserError as error:
        files = [source.location for source in manifest.sources if _elsewhere(source)]
        if sources or not files:
            raise
        raise ReleaseError(
            f"{error} The release says of {', '.join(files)} no more than the name: say with `sources` (--source) "
            "where each source is here, in the order of the manifest."
        ) from None
    return diff(directory, out)


def _elsewhere(source: Source) -> bool:
    """Whether a source is files of somebody's machine that are not where the manifest says."""
    path = source.location.rpartition(":")[2]
    return source.revision is None and source.location != "sample" and not Path(path).exists()
