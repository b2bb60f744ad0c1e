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
RUNS = next(kind for kind in KINDS if kind.name == "runs")
CHECK = ("pluralbench", "check", "runs/a", "--data", "pairs.jsonl")
NUMBERS = ("pluralbench", "report", "runs/a", "--format", "csv")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_changed_input(kind: Kind, tried: Tried, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> None:
    good = tmp_path_factory.mktemp("good")
    kind.make(good)
    for line in dict.fromkeys(kind.commands):
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


def test_changed_run_is_not_valid_with_other_numbers(tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    good = tmp_path_factory.mktemp("good")
    RUNS.make(good)
    right = ended(NUMBERS, good)
    assert right.status == 0 == ended(CHECK, good).status, right.said
    for number, draw, folder in tried.cases(RUNS.number):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        file = draw.choice(_files(folder, RUNS))
        how = f"[{file.name}: {mutate(file, draw)}]"
        if tried.end(number, checked := ended(CHECK, folder), how) and checked.status == 0:
            shown = ended(NUMBERS, folder)
            if shown.said != right.said:
                tried.failure(number, "lost", f"valid with other numbers {how}: {shown.said}")
                continue
        _forget(folder)


def _files(folder: Path, kind: Kind) -> list[Path]:
    return sorted(path for path in folder.glob(kind.changed) if path.is_file())


def _given(line: str, chat: ChatServer, file: Path) -> list[str]:
    return [word.format(file=file, server=chat.base_url) for word in shlex.split(line)]


def _forget(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.with_name(folder.name + ".log").unlink()
