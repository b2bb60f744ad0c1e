"""Which of several ways to compute the same is the fastest on this machine: measured once, then remembered.

What is tuned on one processor may lose on the next, so nothing here goes by a processor's name. The choices lie in a
file of the user's cache, one for each processor, number of threads and version of torch; to measure anew, delete it.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from platformdirs import user_cache_path
from pluralbench_runs import write_text

ROUNDS = 7
CHOICES = "fastest.json"
CPUINFO = Path("/proc/cpuinfo")


@cache
def machine_folder() -> Path:
    """Where what was measured on this machine lies.

    Each processor, set of instructions that torch and oneDNN are let use, number of threads and version of torch has
    a folder of its own.
    """
    instructions = [torch.backends.cpu.get_cpu_capability(), os.environ.get("ONEDNN_MAX_CPU_ISA", "")]
    facts = [_processor(), *instructions, str(torch.get_num_threads()), torch.__version__]
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return user_cache_path("pluralbench", appauthor=False) / "machine" / name


_remembered: dict[str, str] = {}


def remembered(question: str) -> str | None:
    """What was the fastest when this was measured, in this process or before; None where it never was."""
    if question not in _remembered:
        _remembered.update(_read(machine_folder() / CHOICES))
    return _remembered.get(question)


def fastest(question: str, ways: Mapping[str, Callable[[], object]], *, rounds: int = ROUNDS) -> str:
    """The name of the way that takes the least time: as remembered for this question, else measured and remembered.

    rounds: how often each is timed, in turn; its least time counts. Where the cache cannot be written, the ways are
    measured in every process.
    """
    known = remembered(question)
    if known in ways:
        return str(known)
    times = [{name: seconds(way) for name, way in ways.items()} for _ in range(rounds)]
    chosen = _remembered[question] = min(ways, key=lambda name: min(taken[name] for taken in times))
    path = machine_folder() / CHOICES
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(_read(path) | {question: chosen}, indent=1) + "\n")
    return chosen


def seconds(way: Callable[[], object]) -> float:
    """How long a call takes by the clock."""
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


def _read(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _processor() -> str:
    """Name and features of the processor, as far as the system tells."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    told = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join(sorted(told)) or f"{platform.machine()} {platform.processor()}"
