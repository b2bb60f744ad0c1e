"""Local copies of releases on the Hub."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_release.checksums import release_files
from pluralbench_release.errors import ReleaseError
from pluralbench_release.hub import file_at, translate_read_errors
from pluralbench_release.manifest import MANIFEST, SUMS, load_manifest
from pluralbench_release.tables import HUB_REPOSITORY, pinned


@contextmanager
def release_at(location: str | Path) -> Iterator[Path]:
    """Provide the directory of a local release, or a temporary copy of one on the Hub, `ORG/NAME[@REVISION]`.

    A copy has only the files that the release lists. It uses the Hub's cache and is deleted when the context ends. A
    local directory takes precedence over a repository of the same name.

    Raises:
        ReleaseError: The Hub does not have the dataset or revision, or it is not a release.
    """
    location = str(location)
    repository, _, revision = location.partition("@")
    if Path(location).exists() or not HUB_REPOSITORY.fullmatch(repository):
        yield Path(location)
        return
    repository, _, commit = pinned(location).partition("@")
    with tempfile.TemporaryDirectory(prefix="pluralbench-release-") as temporary:
        folder = Path(temporary) / repository.partition("/")[2]
        _fetch(repository, commit, revision, folder)
        yield folder


def _fetch(repository: str, commit: str, revision: str, folder: Path) -> None:
    from huggingface_hub import snapshot_download

    name = f"{repository}@{revision}" if revision else repository
    manifest = file_at(repository, commit, MANIFEST)
    if manifest is None:
        raise ReleaseError(f"{name} is not a release: it has no {MANIFEST}.")
    files = [*release_files(load_manifest(manifest)), SUMS]
    with translate_read_errors(repository, commit):
        snapshot = Path(snapshot_download(repository, repo_type="dataset", revision=commit, allow_patterns=files))
    for path in files:
        if (snapshot / path).is_file():  # `verify` reports missing files
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(snapshot / path, folder / path)
