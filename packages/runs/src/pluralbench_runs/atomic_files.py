"""Atomic writes: a new file is written next to the old one and then replaces it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_native_id

from pluralbench_runs.errors import OutputError, one_line
from pluralbench_runs.regular_files import inputs

# A folder with one of these files is a run, a suite, a study or a release.
MARKERS = ("run.json", "suite.json", "study.toml", "provenance/manifest.json")
PAGES = {".html", ".md", ".png", ".svg", ".tex", ".txt"}  # what a user may keep beside a run's own files
OWN_PAGES = {"README.md", "CHANGELOG.md"}
SQLITE = b"SQLite format 3\0"


def check_output(path: Path) -> None:
    """Check that a file may be replaced which a user names for output.

    Raises:
        OutputError: It is an input of the running command, or a part of a run, a release or a ledger.
    """
    target = Path(os.path.realpath(path))
    if not target.is_file():
        return
    if target in inputs():
        raise OutputError(f"{path} is an input of this command and would be overwritten; choose another file.")
    folders = target.parents if target.suffix not in PAGES else target.parents[: target.name in OWN_PAGES]
    folder = next((folder for folder in folders for name in MARKERS if (folder / name).is_file()), None)
    if folder is not None:
        raise OutputError(f"{path} is a part of {folder} and would be overwritten; choose another file.")
    with target.open("rb") as file:
        if target.stem == "ledger" or file.read(len(SQLITE)) == SQLITE:
            raise OutputError(f"{path} is a ledger and would be overwritten; choose another file.")


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """Write a file that a user names for output: `atomic_write` after `check_output`.

    Raises:
        OSError: As `atomic_write` raises it.
        OutputError: As `check_output` raises it.
    """
    check_output(path)
    with atomic_write(path) as new:
        yield new


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without an error.

    If anything fails, such as a full disk, `path` stays as it was. An old file keeps its permissions and owner, a new
    one gets those of the umask, and a symbolic link still points to the replaced file. A device or a pipe is written
    directly.

    Raises:
        OSError: The file cannot be written, or the old one is read-only. The error names `path`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield path
        return
    # A name at the limit of the file system has no room for a suffix, so it is shortened.
    new = target.with_name(f"{target.name[:50]}.{os.getpid()}{get_native_id()}.new")
    try:
        old = target.stat() if target.exists() else None
        if old is not None:
            with target.open("r+b"):  # raises for a read-only file, which a rename would replace
                pass
            new.touch(0o600)
        yield new
        with new.open("r+b") as file:
            os.fsync(file.fileno())
        if old is not None:
            with suppress(OSError):  # only root may give a file away; others may change the group
                os.chown(new, old.st_uid, old.st_gid)
            new.chmod(stat.S_IMODE(old.st_mode))
        new.replace(target)
    except BaseException as error:
        new.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in {None, str(new)}:
            raise OSError(error.errno, error.strerror or one_line(error), str(path)) from error
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8 with `atomic_write`, without changing its line breaks."""
    with atomic_write(path) as new:
        new.write_text(text, encoding="utf-8", newline="")
