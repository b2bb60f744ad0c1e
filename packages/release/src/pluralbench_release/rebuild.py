"""Build a release again from its own recipe and recorded calls."""

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import read_manifest

BUILDERS = "pluralbench.builders"


def rebuild(directory: Path, out: Path, *, sources: Sequence[str] = ()) -> list[TableDiff]:
    """Rebuild the release in `directory` into `out`, asking no model, and return what differs.

    sources: where the sources are now, if not where the recipe says.

    The builder is found by its entry point in the group `pluralbench.builders`, a function
    `(release: Path, out: Path, sources: Sequence[str]) -> None`, so this package imports no builder.

    Raises `ReleaseError` when that builder is not installed.
    """
    builder = read_manifest(directory).builder
    found = entry_points(group=BUILDERS, name=builder.name)
    if not found:
        raise ReleaseError(
            f"{directory} was built by {builder.distribution}, which is not installed here; "
            f"install {builder.distribution}=={builder.version}."
        )
    next(iter(found)).load()(directory, out, list(sources))
    return diff(directory, out)
