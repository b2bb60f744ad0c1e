"""How much is tried, and from which seed."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import project_files
import pytest
from chat_server import ChatServer, serve
from children import Ended
from printed_tables import TRIED


@dataclass
class Tried:
    """The cases of a kind: each is drawn from its own seed, so that it can be run alone."""

    kind: str
    seed: str
    share: float
    only: int | None
    test: str
    folder: Path
    tried: int = 0
    failed: dict[int, tuple[str, str]] = field(default_factory=dict)

    def cases(self, full: int) -> Iterator[tuple[int, random.Random, Path]]:
        """The number, the draws and the new folder of each case. full: how many a full run tries."""
        for number in range(max(1, round(full * self.share))) if self.only is None else [self.only]:
            folder = self.folder / str(number)
            folder.mkdir()
            self.tried += 1
            yield number, random.Random(f"{self.seed} {self.kind} {number}"), folder

    def failure(self, number: int, what: str, said: str) -> None:
        """Count a failure of a case: one of the columns of the table, and a line on it."""
        self.failed.setdefault(number, (what, said))

    def end(self, number: int, ended: Ended, also: str = "") -> bool:
        """Count how a child ended; whether it ended as a command should."""
        if ended.fault:
            self.failure(number, ended.fault, f"{ended.last_line[:300]} {also}")
        return not ended.fault

    def again(self, number: int) -> str:
        """The command that runs one case again."""
        return f"pytest -m faults '{self.test}' --faults-seed {self.seed} --faults-case {number}"

    def told(self) -> dict[str, Any]:
        first = min(self.failed, default=None)
        counts = Counter(what for what, _ in self.failed.values())
        again = "" if first is None else self.again(first)
        return {"kind": self.kind, "tried": self.tried, "counts": dict(counts), "again": again}

    def __str__(self) -> str:
        lines = [
            f"{number}: {what}: {said} ({self.folder / str(number)})" for number, (what, said) in self.failed.items()
        ]
        return "\n".join([f"{len(lines)} of {self.tried} cases failed", *lines])


@pytest.fixture
def tried(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tried]:
    option = request.config.getoption
    seed, share, only = option("--faults-seed"), option("--faults-share"), option("--faults-case")
    found = Tried(request.node.name, seed, share, only, request.node.nodeid, tmp_path)
    yield found
    request.node.user_properties.append((TRIED, found.told()))
    if found.failed:
        pytest.fail(str(found), pytrace=False)


@pytest.fixture(scope="session")
def chat() -> Iterator[ChatServer]:
    """A chat server that answers whatever a builder asks."""
    with serve(project_files.answer) as server:
        yield server
