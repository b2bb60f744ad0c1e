"""The files of a release's directory: which lie there, and reading one without following it out of there."""

import os
import stat
from pathlib import Path

from pluralbench_runs import UserError, file_digest, open_file, safe_join

from pluralbench_release.errors import ReleaseError

LEFT_ALONE = (".git", ".gitattributes", ".cache/huggingface")
"""What git and the Hub's client put into a release's directory. It is not of the release, and nothing reads it."""

LONGEST_SHOWN = 300  # characters of a name in a sentence
LONGEST_TEXT = 16 * 2**20  # bytes of a manifest, card or recipe; those of the largest releases have some 100 kB


def directory_contents(directory: Path) -> tuple[list[str], list[str]]:
    """What lies in `directory`, at any depth, each by its path there. No link is followed.

    First the files that are not left alone, then a sentence for each link, wherever it is, and for each thing that is
    neither a file nor a folder.
    """
    files: list[str] = []
    strange: list[str] = []

    def path_of(place: str) -> str:
        path = Path(place).relative_to(directory).as_posix()
        return "" if path == "." else path

    def unlisted(error: OSError) -> None:
        strange.append(f"{shown(path_of(error.filename)) or directory} cannot be listed: {error.strerror}.")

    for folder, folders, others in os.walk(directory, onerror=unlisted):
        for path in (path_of(os.path.join(folder, name)) for name in (*folders, *others)):  # noqa: PTH118 - of a text
            kind = kind_of(directory / path)
            if kind == "link":
                strange.append(f"{shown(path)} is a link, and a release holds none; put the file itself in its place.")
            elif kind == "file" and not _is_left_alone(path):
                files.append(path)
            elif kind not in {"file", "folder"} and not _is_left_alone(path):
                strange.append(f"{shown(path)} is neither a file nor a folder; take it away.")
    return sorted(files), sorted(strange)


def _is_left_alone(path: str) -> bool:
    return any(path == name or path.startswith(f"{name}/") for name in LEFT_ALONE)


def kind_of(path: Path) -> str | None:
    """ "file", "folder", "link" or "other"; None for what is not there, be it that no file can have that name."""
    try:
        mode = path.lstat().st_mode
    except PermissionError:
        raise
    except (OSError, ValueError):
        return None
    return {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}.get(stat.S_IFMT(mode), "other")


def existing(directory: Path, path: str) -> Path:
    """The file `path` of the release in `directory`, if it is a file and reached without a link.

    Raises `ReleaseError` where it is anything else, or is not there.
    """
    try:
        file = safe_join(directory, path)
    except UserError as error:
        raise ReleaseError(str(error)) from None
    parts = path.split("/")
    for number in range(1, len(parts) + 1):
        if kind_of(step := directory.joinpath(*parts[:number])) == "link":
            raise ReleaseError(f"{step} is a link, and a release holds none; put the file itself in its place.")
    kind = kind_of(file)
    if kind is None:
        raise ReleaseError(f"{file} is missing.")
    if kind != "file":
        raise ReleaseError(f"{file} is no file, where a release has one.")
    return file


def existing_digest(directory: Path, path: str) -> str:
    """SHA-256 of a file's bytes; see `existing`."""
    return file_digest(existing(directory, path))


def text_of(file: Path, called: str | None = None) -> str:
    """The text of a manifest, card or list of digests.

    called: what errors call it, in place of its path. Raises `ReleaseError` for what is no text or too long.
    """
    called = called or str(file)
    with open_file(file) as opened:
        content = opened.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise ReleaseError(f"{called} is longer than {LONGEST_TEXT // 2**20} MB, which no release's is.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{called} is no text in UTF-8 ({error.reason} at byte {error.start:,}).") from None


def shown(text: str) -> str:
    """A stranger's name as it is, or in quotes and escaped where a terminal would take part of it for a command."""
    said = text if text.isprintable() else ascii(text)
    return said if len(said) <= LONGEST_SHOWN else f"{said[: LONGEST_SHOWN - 1]}…"
