"""Commands in children forked from a process that has imported all of them: what each says, and how it ends.

A command in a process of its own imports for seconds before it does anything; `start` of a child costs some 50 ms. It
has the words, the folder, the environment and the exit status of a command. A child that dies, aborts or hangs takes
nothing else with it.
"""

import contextlib
import multiprocessing
import os
import re
import resource
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import psutil
from commands import environment
from pluralbench_runs import run
from pluralbench_schemas import TableError

PATIENCE, PAUSE = 20.0, 5.0
"""Seconds of work after which a child hangs, and those within which it does some if it has not stopped."""
STATUSES = {0, 1, 2, 130, 143}
"""Those that the commands document: done, a difference was found, a mistake that the user can mend, interrupted."""
RAISED = 99
"""The exit status of a child that an exception left."""
MEMORY = 16 * 1024**3
PRELOADED = ["pytest", "preloaded"]
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}
TRACE = "Traceback (most recent call last)"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
"""What could control a terminal or reorder its text. Reports isolate names by U+2068 and U+2069."""


@dataclass(frozen=True)
class Ended:
    """How a child ended. status: as of a shell's command, negative for a signal. said: stdout and stderr together."""

    status: int
    said: str
    seconds: float
    hung: bool = False

    @property
    def fault(self) -> str:
        """`traceback`, `hang`, `death` or `terminal` (control characters); nothing if it ended as a command should."""
        if self.hung:
            return "hang"
        if self.status < 0 or "panicked at" in self.said:
            return "death"
        if self.status == RAISED or TRACE in self.said or self.status not in STATUSES:
            return "traceback"
        return "terminal" if CONTROL.search(self.said) else ""

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass
class Child:
    """A child that runs, in a session of its own. log: the file of its stdout and stderr."""

    process: Any
    log: Path
    began: float = field(default_factory=time.monotonic)

    def signal(self, number: int) -> None:
        """Send a signal to it, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def end(self, patience: float = PATIENCE) -> Ended:
        """Wait for its end, and kill it and what it started once it hangs.

        It hangs after so many seconds of work, or where it neither works nor ends; a busy machine lets nothing hang.
        """
        self.process.join(max(0.0, self.began + patience - time.monotonic()))
        worked = -1.0
        while self.process.exitcode is None and worked < (now := self._worked()) < patience:
            worked = now
            self.process.join(PAUSE)
        hung = self.process.exitcode is None
        if hung:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
        said = self.log.read_text(encoding="utf-8", errors="replace")
        return Ended(self.process.exitcode, said, time.monotonic() - self.began, hung)

    def _worked(self) -> float:
        """Seconds of CPU time that it and what it started have had."""
        try:
            child = psutil.Process(self.process.pid)
            times = [one.cpu_times() for one in [child, *child.children(recursive=True)]]
        except psutil.Error:
            return -1.0
        return sum(time.user + time.system for time in times)


def start(
    words: Sequence[str],
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    before: Callable[..., object] | None = None,
    arguments: Sequence[Any] = (),
    log: str = "",
) -> Child:
    """Start a command, `python FILE`, or a function of `subjects` by its name, with these words in `folder`.

    env: added to the environment. before: called with `arguments` in the child, first of all. log: a file in `folder`
    for what is said, instead of one beside it.
    """
    said = folder / log if log else folder.with_name(folder.name + ".log")
    process = prepare().Process(
        target=_inside, args=(list(words), folder, said, dict(env or {}), before, tuple(arguments))
    )
    process.start()
    return Child(process, said)


def ended(words: Sequence[str], folder: Path, *, patience: float = PATIENCE, **options: Any) -> Ended:
    """Run it to its end."""
    return start(words, folder, **options).end(patience)


@cache
def prepare(**env: str) -> Any:
    """Start the process from which all children are forked; env: what libraries read when they are imported."""
    env = environment(env or QUIET)
    here = Path(__file__).parent
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(here.parent / "support"), str(here)])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with mock.patch.dict(os.environ, env):
        forkserver.ensure_running()
    return context


def _inside(
    words: list[str],
    folder: Path,
    log: Path,
    env: dict[str, str],
    before: Callable[..., object] | None,
    arguments: tuple[Any, ...],
) -> NoReturn:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ.update(env)
    os.chdir(folder)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    status = RAISED
    try:
        if before is not None:
            before(*arguments)
        _call(words)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:  # noqa: BLE001 - which is what is looked for
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _call(words: list[str]) -> None:
    name, *rest = words
    function = getattr(import_module("subjects"), name, None)
    if function is not None:
        run(lambda: function(*rest), name, mistakes=(TableError,))
    if name == "python":
        sys.argv = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_path(rest[0], run_name="__main__")
        return
    sys.argv = [name, *rest]
    [script] = entry_points(group="console_scripts", name=name)
    script.load()()
