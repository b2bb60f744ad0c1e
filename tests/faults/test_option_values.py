"""Whatever a person gives an option, a command ends with a sentence or with a result that its own readers read."""

import shlex
import shutil
from pathlib import Path

import pytest
from chat_server import ChatServer
from children import PATIENCE, ended
from conftest import Tried
from option_values import LINES, READERS, drawn_words, make_made, make_written

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
NUMBER = 150
LONGER = 4 * PATIENCE


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Path:
    folder = tmp_path_factory.mktemp("good")
    make_written(folder)
    make_made(folder, chat.base_url)
    return folder


def readers(folder: Path) -> list[str]:
    """The commands that read what a command wrote."""
    return [line for name, lines in READERS.items() if (folder / "out" / name).exists() for line in lines]


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line.split()[:3]))
def test_option_values(
    line: str, good: Path, tried: Tried, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer
) -> None:
    words = shlex.split(line.format(server=chat.base_url))
    folder = shutil.copytree(good, tmp_path_factory.mktemp("copied") / "case", symlinks=True)
    done = ended(words, folder, patience=LONGER)
    assert done.status == 0, done.said
    for reader in readers(folder):
        read = ended(shlex.split(reader), folder, patience=LONGER)
        assert read.status == 0, (reader, read.said)
    for number, draw, folder in tried.cases(NUMBER):
        shutil.copytree(good, folder, dirs_exist_ok=True, symlinks=True)
        given = drawn_words(words, draw)
        added = f"{given[len(words) :]}"[:300]
        done = ended(given, folder, patience=LONGER)
        fine = tried.end(number, done, added)
        for reader in readers(folder) if done.status == 0 else ():
            read = ended(shlex.split(reader), folder, patience=LONGER)
            fine = tried.end(number, read, f"{added} {reader}") and fine
            if read.status not in {0, 1}:
                tried.failure(number, "lost", f"{added} {reader}: {read.last_line[:300]}")
        if fine:
            shutil.rmtree(folder)
            folder.with_name(folder.name + ".log").unlink()
