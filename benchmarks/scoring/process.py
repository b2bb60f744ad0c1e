"""The controller's interface to a worker process."""

import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from machine import offline_environment
from pluralbench_runs import UserError

from scoring.protocol import Answer, Settings

BENCHMARKS = Path(__file__).parent.parent


class WorkerError(UserError):
    """A worker process that ended early."""

    exit_status = 1


class Worker:
    """A strategy in its own process, as a context manager; ready after construction."""

    def __init__(self, settings: Settings, *, python: Path | None = None) -> None:
        self.strategy = settings.strategy
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed on exit
        self._process = subprocess.Popen(
            [str(python or sys.executable), "-m", "scoring.worker", json.dumps(asdict(settings))],
            cwd=BENCHMARKS,
            env=offline_environment(settings.threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        try:
            self.versions: dict[str, str] = self._read()
        except BaseException:
            self.close()
            raise

    def run(self, workload: str) -> Answer:
        """Run the strategy over the workload once."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        with suppress(BrokenPipeError):  # the process ended; reading reports why
            self._process.stdin.write(f"run {workload}\n")
            self._process.stdin.flush()
        return Answer(**self._read())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            tail = "\n".join(self._errors.read().splitlines()[-20:])
            raise WorkerError(f"The process of `{self.strategy}` ended with status {status}:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer
