"""List and read the files of a release directory without following links out of it."""

import stat
from pathlib import Path

from pluralbench_runs import UserError, file_digest, open_file, safe_join
from pluralbench_runs.regular_files import walk

from pluralbench_release.errors import ReleaseError

IGNORED = (".git", ".gitattributes", ".cache/huggingface")
"""Files of git and of the Hub's client, which do not belong to the release."""

LONGEST_SHOWN = 300  # characters of a name in a message
LONGEST_TEXT = 16 * 2**20  # bytes of a manifest, card or recipe; the largest releases have about 100 kB


def directory_contents(directory: Path) -> tuple[list[str], list[str]]:
    """List the contents of a directory at any depth, without following links.

    Returns:
        The paths of files that are not ignored (see `IGNORED`), and one sentence for each link and each entry that is
        neither a file nor a folder.
    """
    files: list[str] = []
    problems: list[str] = []

    def relative(name: str | Path) -> str:
        path = Path(name).relative_to(directory).as_posix()
        return "" if path == "." else path

    def report_unreadable(error: OSError) -> None:
        problems.append(f"{printable(relative(error.filename)) or directory} cannot be listed: {error.strerror}.")

    for folder, folders, others in walk(directory, onerror=report_unreadable):
        for path in (relative(folder / name) for name in (*folders, *others)):
            kind = kind_of(directory / path)
            if kind == "link":
                problems.append(f"{printable(path)} is a link; replace it with the file itself.")
            elif kind == "file" and not _is_ignored(path):
                files.append(path)
            elif kind not in {"file", "folder"} and not _is_ignored(path):
                problems.append(f"{printable(path)} is neither a file nor a folder; remove it.")
    return sorted(files), sorted(problems)


def _is_ignored(path: str) -> bool:
    return any(path == name or path.startswith(f"{name}/") for name in IGNORED)


def kind_of(path: Path) -> str | None:
    """Return "file", "folder", "link" or "other"; None if the path does not exist or is not valid."""
    try:
        mode = path.lstat().st_mode
    except PermissionError:
        raise
    except (OSError, ValueError):
        return None
    return {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}.get(stat.S_IFMT(mode), "other")


def existing_file(directory: Path, path: str) -> Path:
    """Return a file of a release directory that can be reached without links.

    Raises:
        ReleaseError: The path leads out of the directory, does not exist, contains a link, or is not a file.
    """
    try:
        file = safe_join(directory, path)
    except UserError as error:
        raise ReleaseError(str(error)) from None
    parts = path.split("/")
    for number in range(1, len(parts) + 1):
        if kind_of(step := directory.joinpath(*parts[:number])) == "link":
            raise ReleaseError(f"{step} is a link; replace it with the file itself.")
    kind = kind_of(file)
    if kind is None:
        raise ReleaseError(f"{file} is missing.")
    if kind != "file":
        raise ReleaseError(f"{file} is not a file.")
    return file


def existing_file_digest(directory: Path, path: str) -> str:
    """Compute the SHA-256 of a file's bytes (see `existing_file`)."""
    return file_digest(existing_file(directory, path))


def read_text(file: Path, name: str | None = None) -> str:
    """Read the text of a manifest, card or list of digests.

    Args:
        file: The file.
        name: Name of the file in errors. Default: its path.

    Raises:
        ReleaseError: The file is too long or not UTF-8.
    """
    name = name or str(file)
    with open_file(file) as opened:
        content = opened.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise ReleaseError(f"{name} is longer than {LONGEST_TEXT // 2**20} MB.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{name} is not UTF-8 text ({error.reason} at byte {error.start:,}).") from None


def printable(text: str) -> str:
    """Quote and escape an untrusted name if it contains control characters, and shorten it if it is too long."""
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
