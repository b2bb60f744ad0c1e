"""Opening of files, and listing of folders, of unknown origin."""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_runs.errors import UserError

IRREGULAR = "it is not a regular file; save its contents to one"  # such as a pipe that a shell makes for `<(...)`
MAX_FOLDERS = 10_000  # below one that is read by a library
# Of a file that is read whole because it is small: settings, records, a chat template. The parsed JSON of 16 MiB takes
# at most 1 GB; the largest configurations of models have less than 1 MB.
SMALL_BYTES = 16 * 2**20

_noted: list[set[Path]] = []  # real paths of the files that `open_file` opened, for each active `noted_inputs`


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

    Args:
        folder: The folder.
        error: The type of the errors.

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
