"""What is dear to make, made once for all processes of a test session: a folder for them all."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

FOLDER = "PLURALBENCH_TEST_SESSION"
CACHE = "cache"
"""What commands that read the embedded model's weights have as `XDG_CACHE_HOME`, so that one of them writes these."""


def make_session_folder() -> None:
    """Make the folder, which goes with this process, unless the one that started this process made it."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="pluralbench-tests-")
        atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)


def session_folder(name: str) -> Path:
    """A place in the folder."""
    make_session_folder()
    return Path(os.environ[FOLDER]) / name
