"""What is dear to make, made once for all processes of a test session: a folder for them all."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

FOLDER = "PLURALBENCH_TEST_SESSION"
CACHE = "cache"
"""What commands that read the embedded model's weights have as `XDG_CACHE_HOME`, so that one of them writes these."""


def make_session_folder() -> None:
    """Make the folder, which goes with this process, unless the one that started this process made it."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="pluralbench-tests-")
        atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)


def one_certificate() -> str:
    """A file with one of the certificates that the web's clients trust.

    Each client reads all of them as it is made, for 50 ms, and tests reach this machine alone.
    """
    import certifi

    path = session_folder("certificate.pem")
    if not path.exists():
        end = "-----END CERTIFICATE-----\n"
        path.write_text(Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0] + end, encoding="utf-8")
    return str(path)


def session_folder(name: str) -> Path:
    """A place in the folder."""
    make_session_folder()
    return Path(os.environ[FOLDER]) / name


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder in it that the first process to come makes, and that others wait for and do not change."""
    from filelock import FileLock  # not with the members that share nothing

    folder = session_folder(name)
    whole = folder.with_suffix(".whole")  # beside it: what is made records where it is, and so cannot be moved
    with FileLock(folder.with_suffix(".lock")):
        if not whole.exists():
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder
