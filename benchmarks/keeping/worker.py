"""Make one run in its own process and measure its phases: `python -m keeping.worker JOB` (see `protocol.Job`).

The run is made by `pluralbench.score`, whose steps are replaced by timed ones.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pluralbench_rewards import FunctionModel, Group

from keeping.protocol import OTHER, STOPPED, Job, Phase, Report

STEPS = {
    "load_benchmark": "reading",
    "decide": "metrics",
    "numbers_of_run": "metrics",
    "score_items": "writing",
    "write_run": "writing",
    "load_run": "reading back",
}
KIB = 1 if sys.platform == "darwin" else 1024


class Stopped(Exception):
    """Raised to interrupt a run."""


def by_length(groups: Sequence[Group]) -> list[list[float]]:
    """Return scores that cost nothing."""
    return [[float(len(response) * 7919 % 1009) for response in group.responses] for group in groups]


def by_another(groups: Sequence[Group]) -> list[list[float]]:
    """Return other scores that cost nothing."""
    return [[float(len(response) * 7919 % 997) for response in group.responses] for group in groups]


class Clock:
    """Adds up the time of each phase."""

    def __init__(self) -> None:
        self.phases: dict[str, Phase] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the enclosed code."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        before = self.phases.get(name, Phase())
        self.phases[name] = Phase(
            before.wall + time.perf_counter() - wall, before.cpu + time.process_time() - cpu, before.peak
        )

    def timed(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a step so that its calls are timed as a phase."""

        def timed_step(*args: Any, **kwargs: Any) -> Any:
            with self.phase(name):
                result = step(*args, **kwargs)
            self.record_peak(name)
            return result

        return timed_step

    def record_peak(self, name: str) -> None:
        """Record the peak memory."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
        self.phases[name] = replace(self.phases[name], peak=peak)


class Timed(FunctionModel):
    """A function model whose journal is timed separately."""

    clock = Clock()

    def score(self, groups: Any, *, cached: Any = None, on_scored: Any = None) -> Any:
        """Score as `FunctionModel` does."""
        journal = [0.0, 0.0]

        def timed(scores: Any) -> None:
            wall, cpu = time.perf_counter(), time.thread_time()
            on_scored(scores)
            journal[0] += time.perf_counter() - wall
            journal[1] += time.thread_time() - cpu

        with self.clock.phase("scoring calls"):
            scored = super().score(groups, cached=cached, on_scored=timed)
        calls = self.clock.phases["scoring calls"]
        self.clock.phases["scoring calls"] = Phase(calls.wall - journal[0], calls.cpu - journal[1])
        self.clock.phases["journal"] = Phase(journal[0], journal[1])
        for name in ("scoring calls", "journal"):
            self.clock.record_peak(name)
        return scored


def make_run(job: Job) -> None:
    """Make the run of a job, and write the report."""
    import pluralbench
    from pluralbench.evaluation import loading, scores

    clock = Timed.clock
    steps: list[tuple[Any, str, str]] = [
        (scores if step in {"decide", "score_items"} else loading, step, phase) for step, phase in STEPS.items()
    ]
    steps.append((loading.LoadedBenchmark, "groups", "reading"))
    for owner, step, phase in steps:
        stopped = job.how == STOPPED and step == "numbers_of_run"
        setattr(owner, step, stop if stopped else clock.timed(phase, getattr(owner, step)))
    model = Timed(by_another if job.how == OTHER else by_length)
    try:
        run = pluralbench.score(model, benchmark=job.benchmark, data=job.data, out=job.out)
    except Stopped:
        return
    digests = {
        "metrics": sha256((run.path / "metrics.json").read_bytes()).hexdigest(),
        "items": sha256(run.items.write_ndjson().encode()).hexdigest(),
    }
    Path(job.report).write_text(json.dumps(asdict(Report(clock.phases, digests))), "utf-8")


def stop(*_: Any, **__: Any) -> Any:
    """Interrupt the run."""
    raise Stopped


if __name__ == "__main__":
    make_run(Job(**json.loads(sys.argv[1])))
