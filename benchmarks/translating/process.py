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
    """Run a command to its end and measure it. Raises `CommandFailed`.

    Its peak memory is that of its largest process, or the largest observed sum of concurrent processes if that is more;
    shared pages count once.
    """
    with tempfile.TemporaryFile() as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            where.pinned(command), stdout=log, stderr=log, env=os.environ | dict(environment or {}), cwd=folder
        )
        total = 0
        for look in count():
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if look % LOOKS == 0:
                total = max(total, _total_memory(process.pid))
            time.sleep(EVERY)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)  # already waited for
        log.seek(0)
        output = log.read().decode(errors="replace")
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)[:300]} ended with status {process.returncode}:\n{output[-3000:]}")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss * 1024, total))


def _total_memory(pid: int) -> int:
    """Bytes of a process and its children, with shared pages counted once; 0 without children."""
    try:
        processes = [psutil.Process(pid)]
        processes += processes[0].children(recursive=True)
        return sum(process.memory_full_info().pss for process in processes) if len(processes) > 1 else 0
    except (psutil.Error, OSError):  # a process just ended
        return 0


def note(line: str) -> None:
    """Print the progress of a benchmark on standard error."""
    print(line, file=sys.stderr, flush=True)


def main(benchmark: Callable[[], object]) -> None:
    """Run a benchmark, and exit with the output of a failed command."""
    try:
        benchmark()
    except CommandFailed as error:
        raise SystemExit(str(error)) from None
