"""Run a command in a process of its own and say what it took. Standard library and psutil only (see `protocol`)."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psutil

from translating.protocol import Measured

EVERY = 0.05  # seconds between two looks at whether it ended
LOOKS = 10  # of them to one at its memory, which takes the system a while


class CommandFailed(Exception):
    """A command that ended with another status than 0; the message has its last words."""


@dataclass(frozen=True)
class Cores:
    """The cores that measured commands are kept to; none where the system has no `taskset`."""

    numbers: tuple[int, ...]

    def pinned(self, command: Sequence[str]) -> list[str]:
        """The command on these cores."""
        listed = ",".join(map(str, self.numbers))
        return ["taskset", "-c", listed, *command] if self.numbers else list(command)


def cores(count: int) -> Cores:
    """The first cores that this process may use."""
    if shutil.which("taskset") is None or not hasattr(os, "sched_getaffinity"):
        return Cores(())
    return Cores(tuple(sorted(os.sched_getaffinity(0))[:count]))


def measure(
    command: Sequence[str], where: Cores, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Measured:
    """Run the command to its end, in `folder` or the current one. Raises `CommandFailed`.

    Its peak of memory is what the system says of its largest process, or, where it has several at once and that is
    more, the largest sum that was seen; pages that they share count once.
    """
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            where.pinned(command), stdout=said, stderr=said, env=os.environ | dict(environment or {}), cwd=folder
        )
        together = 0
        for look in count():
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if look % LOOKS == 0:
                together = max(together, _together(process.pid))
            time.sleep(EVERY)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)  # it was waited for here
        said.seek(0)
        output = said.read().decode(errors="replace")
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)[:300]} ended with status {process.returncode}:\n{output[-3000:]}")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss * 1024, together))


def _together(pid: int) -> int:
    """Bytes of a process and its children, shared pages once; 0 for a process without children."""
    try:
        processes = [psutil.Process(pid)]
        processes += processes[0].children(recursive=True)
        return sum(process.memory_full_info().pss for process in processes) if len(processes) > 1 else 0
    except (psutil.Error, OSError):  # one has just ended
        return 0


def note(line: str) -> None:
    """Say on standard error how far a benchmark is."""
    print(line, file=sys.stderr, flush=True)


def main(benchmark: Callable[[], object]) -> None:
    """Run a benchmark's command; what fails is said with its last words."""
    try:
        benchmark()
    except CommandFailed as error:
        raise SystemExit(str(error)) from None
