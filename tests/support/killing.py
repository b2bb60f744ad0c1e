"""Kill the work of this process: at a file operation, which it and all after it do nothing; or stop it at a call."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import Any

import pytest

CHANGES = ("mkdir", "rename", "replace", "rmdir", "unlink")


class Killed(BaseException):
    """Where the process would have ended."""


class Stop(BaseException):
    """Where a run ended, between two steps."""


@contextmanager
def stopped_at(call: int, owner: Any, name: str) -> Iterator[None]:
    """Stop what runs in this context at this call of a function of a module or a class, the first being 1."""
    function, calls = getattr(owner, name), count(1)

    def counted(*arguments: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise Stop
        return function(*arguments, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, counted)
        with pytest.raises(Stop):
            yield


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
