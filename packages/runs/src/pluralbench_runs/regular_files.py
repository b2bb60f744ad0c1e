"""Opening of files of unknown origin."""

import errno
import io
import os
import stat
from pathlib import Path


def open_file(path: Path) -> io.BufferedReader:
    """Open a regular file to read its bytes.

    Raises:
        OSError: As `open` raises it, and for a pipe, a device or a socket, which could block or never end.
        ValueError: The path has a NUL character.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")  # noqa: PTH123 - a file descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))
