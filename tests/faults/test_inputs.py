"""A thousand changed inputs of each kind: whatever is in a file, a command ends with a sentence or with a result."""

import shlex
import shutil
from pathlib import Path

import pytest
from chat_server import ChatServer
from children import ended
from conftest import Tried
from inputs import KINDS, Kind
from mutations import mutate

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_changed_input(kind: Kind, tried: Tried, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> None:
    good = tmp_path_factory.mktemp("good")
    kind.make(good)
    for line in kind.commands:
        copied = shutil.copytree(good, tmp_path_factory.mktemp("copied") / "case")
        result = ended(_given(line, chat, min(_files(copied, kind)).relative_to(copied)), copied)
        assert result.status == kind.good, result.said
    for number, draw, folder in tried.cases(kind.number):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        file = draw.choice(_files(folder, kind))
        how = mutate(file, draw)
        place = file.relative_to(folder)
        given = _given(draw.choice(kind.commands), chat, place)
        if tried.end(number, ended(given, folder), f"[{' '.join(given)}; {place}: {how}]"):
            _forget(folder)


def _files(folder: Path, kind: Kind) -> list[Path]:
    return sorted(path for path in folder.glob(kind.changed) if path.is_file())


def _given(line: str, chat: ChatServer, file: Path) -> list[str]:
    return [word.format(file=file, server=chat.base_url) for word in shlex.split(line)]


def _forget(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.with_name(folder.name + ".log").unlink()
