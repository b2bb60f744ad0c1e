"""A disk that is full: no file of this process grows beyond a size."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let each write beyond so many bytes of a file fail, as on a full disk (EFBIG in place of ENOSPC)."""
    before, sys.dont_write_bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), True  # Python would cut it off unseen
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = False
