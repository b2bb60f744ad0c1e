"""Files of unknown origin are opened only if they are regular, and files are replaced whole.

A new file is written next to the old one and then replaces it.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_native_id

from pluralbench_runs.errors import OutputError, UserError, one_line

IRREGULAR = "it is not a regular file; save its contents to one"  # such as a pipe that a shell makes for `<(...)`
MAX_FOLDERS = 10_000  # below one that is read by a library
# Of a file that is read whole because it is small: settings, records, a chat template. The parsed JSON of 16 MiB takes
# at most 1 GB; the largest configurations of models have less than 1 MB.
SMALL_BYTES = 16 * 2**20

_noted: list[set[Path]] = []  # real paths of the files that `open_file` opened, for each active `noted_inputs`
# A folder with one of these files is a run, a suite, a study or a release.
MARKERS = ("run.json", "suite.json", "study.toml", "provenance/manifest.json")
PAGES = {".html", ".md", ".png", ".svg", ".tex", ".txt"}  # what a user may keep beside a run's own files
OWN_PAGES = {"README.md", "CHANGELOG.md"}
SQLITE = b"SQLite format 3\0"


@contextmanager
def noted_inputs() -> Iterator[None]:
    """Note the files that the block opens by `open_file`, so that no output of a command replaces its input."""
    _noted.append(set())
    try:
        yield
    finally:
        _noted.pop()


def inputs() -> set[Path]:
    """Return the real paths of the files that were opened in the active `noted_inputs` blocks."""
    return {path for opened in _noted for path in opened}


def open_file(path: Path) -> io.BufferedReader:
    """Open a regular file to read its bytes.

    Raises:
        OSError: As `open` raises it, and for a pipe, a device or a socket, which could block or never end.
        ValueError: The path has a NUL character.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno != errno.ENXIO:  # of a socket
            raise
        raise OSError(errno.EINVAL, IRREGULAR, str(path)) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        for opened in _noted:
            opened.add(Path(os.path.realpath(path)))
        return open(descriptor, "rb")  # noqa: PTH123 - a file descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, IRREGULAR, str(path))


def check_file(path: Path) -> None:
    """Check that a file is regular and can be read, before a library opens it by its path. Raises as `open_file`."""
    open_file(path).close()


def read_small(path: Path) -> bytes:
    """Read a regular file of at most `SMALL_BYTES`. Raises as `open_file`, and `OSError` for a larger file."""
    with open_file(path) as file:
        data = file.read(SMALL_BYTES + 1)
    if len(data) > SMALL_BYTES:
        raise OSError(errno.EINVAL, f"it has more than {SMALL_BYTES:,} bytes, the maximum", str(path))
    return data


def walk_files(folder: Path, error: type[UserError]) -> Iterator[Path]:
    """Yield the files of a folder at any depth for a library that reads the folder. Links are followed.

    Raises:
        UserError: Of the type `error`: there is a pipe, a device, a socket or a link to nothing, or there are more
            than `MAX_FOLDERS` folders.
    """
    for number, (place, _, files) in enumerate(os.walk(folder, followlinks=True)):
        if number == MAX_FOLDERS:  # also if a link leads to a folder above it
            raise error(f"{folder} has more than {MAX_FOLDERS:,} folders; give one with the model alone.")
        for path in (Path(place, name) for name in sorted(files)):
            if not path.is_file():
                raise error(f"{path} is not a regular file; remove it.")
            yield path


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
    """Write a file that a user names for output: `atomic_write` after `check_output`, with the errors of both."""
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
