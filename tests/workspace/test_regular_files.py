"""What is not an ordinary file is refused at once."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from pluralbench_runs import Recipe, check_file, file_digest, open_file, read_recipe, read_toml
from pluralbench_tables import read_parquet, read_text

pytestmark = pytest.mark.timeout(60)


def listen(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/dev/tty"), listen],
    ids=["pipe", "endless", "terminal", "socket"],
)
@pytest.mark.parametrize(
    "read",
    [
        check_file,
        open_file,
        file_digest,
        read_toml,
        lambda path: read_recipe(Recipe, path),
        read_text,
        read_parquet,
    ],
)
def test_what_is_no_ordinary_file_is_named(
    tmp_path: Path, make: Callable[[Path], object], read: Callable[[Path], object]
) -> None:
    make(path := tmp_path / "given.json")
    with pytest.raises(Exception, match=r"it is not a regular file; save its contents to one|No such device"):
        read(path)
