"""Event loops that skip the time in which nothing is due, so that no test waits for a rate."""

import asyncio
import selectors
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Clock:
    """The time of every event loop, in seconds: it passes only where a loop would sleep."""

    now: float = 0.0


def skip_sleep(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let `asyncio.run` skip the time. For work inside this process alone: it waits for no socket."""
    clock = Clock()

    class Skipping(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            ready = super().select(0)
            if not ready:
                assert timeout is not None, "nothing is due, ever"
                clock.now += timeout
            return ready

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return clock.now

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=lambda: Loop(Skipping())) as runner:
            return runner.run(work)

    monkeypatch.setattr(asyncio, "run", run)
    return clock
