"""What is not an ordinary file is refused at once, and folders of any depth and with any links are listed."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pluralbench_release.files import directory_contents
from pluralbench_release.table_files import find_tables
from pluralbench_runs import Recipe, check_file, file_digest, open_file, read_recipe, read_toml
from pluralbench_runs.regular_files import walk
from pluralbench_tables import read_parquet, read_text

pytestmark = pytest.mark.timeout(60)
DEPTH = 1_500  # more than the frames that Python allows


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


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Folders in folders, and a file at the bottom; the path is shorter than the system's limit."""
    here, top = Path.cwd(), tmp_path / "deep"
    top.mkdir()
    os.chdir(top)
    for _ in range(DEPTH):
        Path("d").mkdir()
        os.chdir("d")
    Path("bottom.jsonl").touch()
    os.chdir(here)
    yield top
    subprocess.run(["rm", "-r", top], check=True)  # `rmtree` is recursive


def test_deep_folders_are_listed(deep: Path) -> None:
    path = "d/" * DEPTH + "bottom.jsonl"
    assert directory_contents(deep) == ([path], [])
    assert find_tables(deep, "test") == {"d": {"bottom": [deep / path]}}


def test_each_folder_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "c").symlink_to("a")
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    listed = [(str(place.relative_to(tmp_path)), files) for place, _, files in walk(tmp_path, follow_links=True)]
    assert listed == [(".", ["loop"]), ("a", []), ("a/b", [])]
    assert [place.name for place, _, _ in walk(tmp_path / "a")] == ["a", "b"]
