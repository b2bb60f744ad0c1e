"""Describe the machine of a benchmark, and set the environment of its processes."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from pluralbench_runs import versions


def describe_machine(packages: Iterable[str], cores: Sequence[int]) -> str:
    """Describe the system, processor, cores (pinned or not), load and versions in one line."""
    pinned = f"processes pinned to cores {', '.join(map(str, cores))}" if cores else "not pinned"
    installed = ", ".join(f"{name} {version}" for name, version in versions(packages).items())
    return (
        f"{platform.platform()}, {processor()}, {os.cpu_count()} cores, {pinned}, "
        f"load {os.getloadavg()[0]:.1f} at the end; Python {platform.python_version()}, {installed}"
    )


def processor() -> str:
    """Return the name of the processor, which Python itself knows only on some systems."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def offline_environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with a number of threads, without network and progress bars."""
    return os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
