"""Measure which of several implementations is the fastest on this machine, and cache the choice.

Choices are measured, not derived from a processor's name. They are in a file of the user's cache, one for each
processor, number of threads and version of torch. To measure again, delete the file.
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

DEFAULT_ROUNDS = 7
CHOICES_FILE = "fastest.json"
CPUINFO = Path("/proc/cpuinfo")


@cache
def machine_folder() -> Path:
    """Return the folder of this machine's measurements.

    There is one for each processor, instruction set that torch and oneDNN may use, number of threads and version of
    torch.
    """
    instructions = [torch.backends.cpu.get_cpu_capability(), os.environ.get("ONEDNN_MAX_CPU_ISA", "")]
    facts = [_processor(), *instructions, str(torch.get_num_threads()), torch.__version__]
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return user_cache_path("pluralbench", appauthor=False) / "machine" / name


_choices: dict[str, str] = {}


def cached_choice(question: str) -> str | None:
    """Return the fastest candidate as measured in this process or before; None if it has not been measured."""
    if question not in _choices:
        _choices.update(_read(machine_folder() / CHOICES_FILE))
    return _choices.get(question)


def fastest(question: str, candidates: Mapping[str, Callable[[], object]], *, rounds: int = DEFAULT_ROUNDS) -> str:
    """Return the name of the fastest candidate: the cached choice, else measure and cache it.

    If the cache cannot be written, every process measures.

    Args:
        question: What is measured; the key of the cache.
        candidates: Functions to time, by name.
        rounds: How often each is timed, in turn. Its shortest time counts.
    """
    cached = cached_choice(question)
    if cached in candidates:
        return str(cached)
    times = [{name: seconds(function) for name, function in candidates.items()} for _ in range(rounds)]
    chosen = _choices[question] = min(candidates, key=lambda name: min(taken[name] for taken in times))
    path = machine_folder() / CHOICES_FILE
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(_read(path) | {question: chosen}, indent=1) + "\n")
    return chosen


def seconds(function: Callable[[], object]) -> float:
    """Return the wall-clock time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _read(path: Path) -> dict[str, str]:
    try:
        choices = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return choices if isinstance(choices, dict) else {}


def _processor() -> str:
    """Name and features of the processor, as far as the system reports them."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    features = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join(sorted(features)) or f"{platform.machine()} {platform.processor()}"
