"""A file that would take all memory, in place of each file that a stranger may hand in: a short sentence instead."""

import shutil

import pytest
from bombs import ANY, BOMBS
from chat_server import ChatServer
from children import ended
from conftest import Tried
from inputs import KINDS, Kind
from killed_child import limit_memory
from pluralbench_runs.guard import NO_MEMORY
from test_inputs import _files, _forget, _given

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
MEMORY = 4_000_000_000  # bytes beyond those of a child that has done nothing yet
PATIENCE = 120.0
LONGEST = 2_000  # characters of what is printed after "Error: "
TIMES = 20


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_bombs(kind: Kind, tried: Tried, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> None:
    good = tmp_path_factory.mktemp("good")
    kind.make(good)
    for number, draw, folder in tried.cases(TIMES):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        file = draw.choice(_files(folder, kind))
        place = file.relative_to(folder)
        draw.choice(BOMBS.get(file.suffix, []) + ANY)(file)
        given = _given(draw.choice(kind.commands), chat, place)
        result = ended(given, folder, patience=PATIENCE, before=limit_memory, arguments=(MEMORY,))
        also = f"[{' '.join(given)}; {place}]"
        if not tried.end(number, result, also):
            continue
        error = result.said.rpartition("Error: ")[2]
        if NO_MEMORY in result.said or ("memory" in result.last_line and "allocate" in result.last_line):
            tried.failure(number, "death", f"out of memory: {result.last_line[:300]} {also}")
        elif len(error) > LONGEST:
            tried.failure(number, "terminal", f"{len(error):,} characters of an error {also}")
        else:
            _forget(folder)
