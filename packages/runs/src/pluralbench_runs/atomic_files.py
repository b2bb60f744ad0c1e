"""Files that are replaced whole: the new one is written beside the old one and then takes its place."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pluralbench_runs.errors import one_line


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a new file beside `path`; once it is written and on the disk it replaces `path`.

    After any failure, such as a full disk, `path` is as it was. Permissions of an old file stay, a new file gets those
    of the umask, and a symbolic link keeps leading to the file that is replaced. A device or a pipe is written as it
    is. Raises `OSError` with the name of `path`, also for an old file that may not be written.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        yield path
        return
    # Short, whatever the name: a name at the limit of the file system has no room for another ending.
    new = place.with_name(f"{place.name[:50]}.{os.getpid()}.new")
    try:
        old = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
        if old is not None:
            with place.open("r+b"):  # raises where the old file may not be written, which a rename would not ask
                pass
            new.touch(0o600)
        yield new
        with new.open("r+b") as written:
            os.fsync(written.fileno())
        if old is not None:
            new.chmod(old)
        new.replace(place)
    except BaseException as error:
        new.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in {None, str(new)}:
            raise OSError(error.errno, error.strerror or one_line(error), str(path)) from error
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, its line breaks as they are; a failure leaves the old file, see `atomic_write`."""
    with atomic_write(path) as new:
        new.write_text(text, encoding="utf-8", newline="")
