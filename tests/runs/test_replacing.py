"""A file is replaced whole or not at all, and keeps its permissions and the links to it."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from full_disk import no_file_beyond
from pluralbench_runs import atomic_write, write_text


def test_a_full_disk_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("old " * 1000, encoding="utf-8")
    with no_file_beyond(2000), pytest.raises(OSError, match="File too large") as fault:
        write_text(path, "new " * 1000)
    assert fault.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == "old " * 1000
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "card.md", tmp_path / "elsewhere" / "link.md"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "card.md")
    before = os.umask(0o027)
    try:
        write_text(link, "first\r\n")  # which the link leads to, though it is not there yet
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o604)
    write_text(link, "second")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text("utf-8")) == (0o604, "second")
    assert link.is_symlink()


def test_a_name_at_the_limit_and_a_pipe_can_be_written(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 250 + ".csv"), "long")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "theirs.txt"
    path.write_text("old", encoding="utf-8")
    os.chown(path, 1234, 5678)
    write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text("utf-8")) == (1234, 5678, "new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("mine", encoding="utf-8")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match=r"mine\.txt"):
        write_text(path, "theirs")


def test_so_does_any_other_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), atomic_write(path) as new, new.open("w", encoding="utf-8") as file:
        file.writelines(["half", 3])  # type: ignore[list-item]
    assert [(one.name, one.read_text("utf-8")) for one in tmp_path.iterdir()] == [("a.txt", "old")]


def test_threads_that_write_one_file_leave_what_one_of_them_wrote(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    texts = [str(number) * 9000 for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda text: write_text(path, text), texts * 30))
    assert path.read_text("utf-8") in texts
    assert list(tmp_path.iterdir()) == [path]
