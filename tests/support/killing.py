"""Kill the work of this process at a file operation: that one and all after it do nothing, as where a process died."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import Any

import pytest

CHANGES = ("mkdir", "rename", "replace", "rmdir", "unlink")


class Killed(BaseException):
    """Where the process would have ended."""


@contextmanager
def killed_when(due: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Kill at the first change of a file system before which `due`; what is yielded says whether it came to that."""
    dead: list[bool] = []

    def wrapped(change: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **named: Any) -> Any:
            if dead or due():
                dead.append(True)
                raise Killed
            return change(*arguments, **named)

        return instead

    with monkeypatch.context() as patched:
        for name in CHANGES:
            patched.setattr(os, name, wrapped(getattr(os, name)))
        with suppress(Killed):
            yield lambda: bool(dead)


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[Callable[[], bool]]:
    """Kill at this change of a file system, the first being 0."""
    done = count()
    return killed_when(lambda: next(done) == number, monkeypatch)
