"""The samples of the builders, each built once a session, where there is no torch."""

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from session_folder import session_folder

HEAVY = {"torch", "transformers", "sentence_transformers", "pluralbench_local"}


class Missing:
    """Finds nothing of what is heavy, whether or not it is installed."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)


@contextmanager
def bare(folder: Path) -> Iterator[None]:
    """Be a process in this folder that has no torch and no other program."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*sys.modules]:
            if name.partition(".")[0] in HEAVY:
                patch.delitem(sys.modules, name)
        patch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
        for variable, value in {"PATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}.items():
            patch.setenv(variable, value)
        patch.chdir(folder)
        yield


class Sample(NamedTuple):
    """A release in `dist` of a folder of its own, not to be changed, and what the command wrote."""

    release: Path
    said: str


@cache
def sample(builder: str, *verb: str) -> Sample:
    """What the bare command of a builder, such as `build-personalized`, or a verb of it makes."""
    folder = session_folder("-".join([builder, *verb]))
    said = folder / "said.txt"
    with FileLock(folder.with_suffix(".lock")):
        if not said.exists():
            folder.mkdir()
            said.write_text(_built(folder, [builder, *verb]), encoding="utf-8")
    [manifest] = folder.glob("dist/*/provenance/manifest.json")
    return Sample(manifest.parents[1], said.read_text(encoding="utf-8"))


def _built(folder: Path, words: list[str]) -> str:
    """What the command writes, in this process, which starts in no time."""
    main = import_module(f"{words[0].replace('-', '_')}.cli").main
    written, errors = io.StringIO(), io.StringIO()
    with bare(folder), pytest.MonkeyPatch.context() as patch, redirect_stdout(written), redirect_stderr(errors):
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as exit_:
            main()
    assert not exit_.value.code, errors.getvalue()
    return written.getvalue()
