"""What a benchmark ran on: the system, and the environment of its processes."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from pluralbench_runs import versions


def machine(packages: Iterable[str], cores: Sequence[int]) -> str:
    """System, processor, cores (pinned or not), load and versions, in a line."""
    pinned = f"processes pinned to cores {', '.join(map(str, cores))}" if cores else "not pinned"
    named = ", ".join(f"{name} {number}" for name, number in versions(packages).items())
    return (
        f"{platform.platform()}, {processor()}, {os.cpu_count()} cores, {pinned}, "
        f"load {os.getloadavg()[0]:.1f} at the end; Python {platform.python_version()}, {named}"
    )


def processor() -> str:
    """The processor's name, which Python knows on some systems only."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def quiet(threads: int) -> dict[str, str]:
    """The environment of a process of so many threads that asks no network and draws no bars."""
    return os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
