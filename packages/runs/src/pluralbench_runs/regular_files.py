"""Opening files of strangers: ordinary ones alone."""

import errno
import io
import os
import stat
from pathlib import Path


def open_file(path: Path) -> io.BufferedReader:
    """Open an ordinary file to read its bytes.

    Raises `OSError` as `open` does, and for a pipe, a device or a socket, which would be waited for, or read, without
    end; `ValueError` for a NUL in the path.
    """
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(opened).st_mode
    if stat.S_ISREG(mode):
        return open(opened, "rb")  # noqa: PTH123 - by its number
    os.close(opened)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
