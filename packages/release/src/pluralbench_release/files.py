"""List and read the files of a release directory without following links out of it."""

import os
from pathlib import Path

from pluralbench_release.errors import ReleaseError

IGNORED = (".git", ".gitattributes", ".cache/huggingface")
"""Files of git and of the Hub's client, which do not belong to the release."""


def directory_contents(directory: Path) -> tuple[list[str], list[str]]:
    """List the paths of the files at any depth that are not ignored (see `IGNORED`), and of all links."""
    files, links = [], []
    for folder, folders, others in os.walk(directory):
        for entry in (Path(folder, name) for name in (*folders, *others)):
            path = entry.relative_to(directory).as_posix()
            if entry.is_symlink():
                links.append(path)
            elif entry.is_file() and not any(path == name or path.startswith(f"{name}/") for name in IGNORED):
                files.append(path)
    return sorted(files), sorted(links)


def existing_file(directory: Path, path: str) -> Path:
    """Return a file of a release directory. Raises `ReleaseError` if it does not exist, or is a link or a folder."""
    file = directory / path
    if file.is_symlink():
        raise ReleaseError(f"{file} is a link; replace it with the file itself.")
    if not file.is_file():
        raise ReleaseError(f"{file} is {'not a file' if file.exists() else 'missing'}.")
    return file


def read_text(file: Path, name: str | None = None) -> str:
    """Read the text of a manifest, card or list of digests. Raises `ReleaseError` for one that is not UTF-8."""
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{name or file} is not UTF-8 text ({error.reason} at byte {error.start:,}).") from None
