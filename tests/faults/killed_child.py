"""What is done to a child from within: it kills itself at a file operation, or no file of it may grow."""

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "sqlite3.connect"}
COUNT = "operations"


def kill_at(last: int, within: str) -> None:
    """Kill this process at the file operation of this number (from 0) on a path that has `within`; count them."""
    count = os.open(COUNT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    done = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if event not in OPERATIONS or not arguments or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if within in os.fsdecode(arguments[0]):
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            with contextlib.suppress(OSError):
                os.write(count, b".")

    sys.addaudithook(hook)


def operations(folder: Path) -> int:
    """How many file operations the last child in `folder` did."""
    return (folder / COUNT).stat().st_size


def no_larger_files(size: int) -> None:
    """Let no file of this process grow beyond so many bytes, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
