"""Releases that are on the Hub, as a folder."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_release.checksums import release_files
from pluralbench_release.errors import ReleaseError
from pluralbench_release.hub import file_at, translate_read_errors
from pluralbench_release.manifest import MANIFEST, SUMS, manifest_in
from pluralbench_release.tables import HUB_REPOSITORY, pinned


@contextmanager
def release_at(location: str | Path) -> Iterator[Path]:
    """The folder of a release: a directory as it is, or a copy of what the Hub has as `ORG/NAME@REVISION`.

    Without a revision that is the newest commit. The copy has the files that the release names and no other, goes when
    the context ends, and comes from the Hub's cache where it is there. What is a folder here is never asked for there.

    Raises `ReleaseError` for what the Hub does not have or is no release.
    """
    place = str(location)
    repository, _, revision = place.partition("@")
    if Path(place).exists() or not HUB_REPOSITORY.fullmatch(repository):
        yield Path(place)
        return
    repository, _, commit = pinned(place).partition("@")
    with tempfile.TemporaryDirectory(prefix="pluralbench-release-") as temporary:
        folder = Path(temporary) / repository.partition("/")[2]
        _fetch(repository, commit, revision, folder)
        yield folder


def _fetch(repository: str, commit: str, revision: str, folder: Path) -> None:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - reads its settings from the environment when imported

    shown = f"{repository}@{revision}" if revision else repository
    found = file_at(repository, commit, MANIFEST)
    if found is None:
        raise ReleaseError(f"{shown} is no release: it has no {MANIFEST}.")
    files = [*release_files(manifest_in(found)), SUMS]
    with translate_read_errors(repository, commit):
        kept = Path(snapshot_download(repository, repo_type="dataset", revision=commit, allow_patterns=files))
    for path in files:
        if (kept / path).is_file():  # what is missing is for `verify` to tell
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kept / path, folder / path)
