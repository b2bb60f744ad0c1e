"""One run in a process of its own, `python -m keeping.worker JOB` (see `protocol.Job`), and what each phase took.

The run is made by `pluralbench.score`, whose steps are timed where it calls them.
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

from keeping.protocol import OTHER, STOPPED, Job, Phase, Said

STEPS = {
    "load_benchmark": "reading",
    "decide": "metrics",
    "measure": "metrics",
    "score_items": "writing",
    "write_run": "writing",
    "load_run": "reading back",
}
KIB = 1 if sys.platform == "darwin" else 1024


class Stopped(Exception):
    """Raised where a run is to be interrupted."""


def by_length(groups: Sequence[Group]) -> list[list[float]]:
    """Scores that cost nothing."""
    return [[float(len(response) * 7919 % 1009) for response in group.responses] for group in groups]


def by_another(groups: Sequence[Group]) -> list[list[float]]:
    """Other scores that cost nothing."""
    return [[float(len(response) * 7919 % 997) for response in group.responses] for group in groups]


class Clock:
    """What each phase took, over all the times that it was entered."""

    def __init__(self) -> None:
        self.phases: dict[str, Phase] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        before = self.phases.get(name, Phase())
        self.phases[name] = Phase(
            before.wall + time.perf_counter() - wall, before.cpu + time.process_time() - cpu, before.peak
        )

    def timed(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        """A step whose calls are a phase, with the peak of memory at the end of each."""

        def called(*given: Any, **named: Any) -> Any:
            with self.phase(name):
                result = step(*given, **named)
            self.look(name)
            return result

        return called

    def look(self, name: str) -> None:
        """Note the peak of memory."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
        self.phases[name] = replace(self.phases[name], peak=peak)


class Timed(FunctionModel):
    """A function as a model, whose journal is timed apart from the rest."""

    clock = Clock()

    def score(self, groups: Any, *, known: Any = None, on_scored: Any = None) -> Any:
        """As that of `FunctionModel`."""
        journal = [0.0, 0.0]

        def noted(place: int, scores: list[float]) -> None:
            wall, cpu = time.perf_counter(), time.thread_time()
            on_scored(place, scores)
            journal[0] += time.perf_counter() - wall
            journal[1] += time.thread_time() - cpu

        with self.clock.phase("scoring calls"):
            found = super().score(groups, cached=known, on_scored=noted)
        calls = self.clock.phases["scoring calls"]
        self.clock.phases["scoring calls"] = Phase(calls.wall - journal[0], calls.cpu - journal[1])
        self.clock.phases["journal"] = Phase(*journal)
        for name in ("scoring calls", "journal"):
            self.clock.look(name)
        return found


def made(job: Job) -> None:
    """Make the run of a job, and write what it took."""
    import pluralbench.evaluation.score as verb  # noqa: PLC0415 - its import is no part of the phases
    from pluralbench.evaluation.loading import LoadedBenchmark  # noqa: PLC0415 - the same

    clock = Timed.clock
    LoadedBenchmark.groups = clock.timed("reading", LoadedBenchmark.groups)
    for step, phase in STEPS.items():
        setattr(verb, step, clock.timed(phase, getattr(verb, step)))
    if job.how == STOPPED:
        verb.measure = stop
    model = Timed(by_another if job.how == OTHER else by_length)
    try:
        run = verb.score(model, benchmark=job.benchmark, data=job.data, out=job.out)
    except Stopped:
        return
    found = {
        "metrics": sha256((run.path / "metrics.json").read_bytes()).hexdigest(),
        "items": sha256(run.items.write_ndjson().encode()).hexdigest(),
    }
    Path(job.said).write_text(json.dumps(asdict(Said(clock.phases, found))), "utf-8")


def stop(*_: Any, **__: Any) -> Any:
    """Interrupt."""
    raise Stopped


if __name__ == "__main__":
    made(Job(**json.loads(sys.argv[1])))
