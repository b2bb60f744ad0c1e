"""Processes of this machine: a parallel map with the results of one process in the same order, and workers by name."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, Self, TypeVar

from pluralbench_runs.errors import UserError
from pluralbench_runs.meters import log_status

Item = TypeVar("Item")
Result = TypeVar("Result")

PREFETCH = 1  # items that are submitted ahead, so that no worker waits for the next

_objects: list[Any] = []  # that of this process, if it is one of `NamedWorkers`


class WorkerLost(UserError):
    """A worker process ended unexpectedly."""


class ParallelMap(Protocol):
    """Like `map`: applies a function to each item and yields the results, or raises the errors, in order.

    Items are consumed as they are needed, a few ahead.
    """

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Yield the results."""


def usable_cores() -> int:
    """Count the CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def workers(processes: int) -> Iterator[ParallelMap]:
    """Open a map over worker processes, or over this process if `processes` is 1.

    Functions, items and results must be picklable. The processes are spawned, because libraries with threads need it,
    so a script that uses more than one does so under `if __name__ == "__main__":`. Only this process handles Ctrl-C;
    the workers finish their current items first.

    Raises:
        WorkerLost: A worker was killed, for example because memory ran out.
    """
    if processes == 1:
        yield map
        return
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_initialize_worker)
    try:
        yield partial(_map_in_order, pool, processes + PREFETCH)
    except BrokenProcessPool:
        raise WorkerLost(
            "A worker process was killed, perhaps because memory ran out; free some memory, or set `processes=1`."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _map_in_order(
    pool: ProcessPoolExecutor, max_pending: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    pending: deque[Future[Result]] = deque()
    for item in items:
        pending.append(_submit(pool, function, item))
        if len(pending) >= max_pending:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _submit(pool: ProcessPoolExecutor, function: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Submit an item, with SIGINT blocked: a worker started now would otherwise end with a traceback at Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return pool.submit(function, item)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # inherited by a new process
    try:
        return pool.submit(function, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit with the parent process: a worker whose parent was killed would wait for work forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class NamedWorkers:
    """Worker processes of this machine by name, each with an object of its own, such as a model on a device.

    A context manager, which ends the processes at once. The part of a lost worker goes to the others; errors of an
    object are raised in this process. Python output of the workers is discarded. The functions that create the objects,
    and the arguments and results of methods, are pickled.
    """

    def __init__(self, make: Mapping[str, Callable[[], Any]]) -> None:
        self._make = make
        self._pools: dict[str, ProcessPoolExecutor] = {}
        self._processes: list[Any] = []
        self._starting: dict[Future[Any], str] = {}
        self._ended = False

    def __enter__(self) -> Self:
        """Start the workers."""
        for name, make in self._make.items():
            before = set(active_children())
            pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_initialize_worker)
            self._starting[_submit(pool, _make_object, make)] = name
            self._pools[name] = pool
            self._processes += set(active_children()) - before
        return self

    def __exit__(self, *exc: object) -> None:
        """End the workers."""
        self._ended = True
        for process in self._processes:
            process.kill()
        for pool in [*self._pools.values()]:
            pool.shutdown(cancel_futures=True)

    def results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Call a method with each part of the work, and yield the index of a part and its result as it arrives.

        Raises:
            WorkerLost: All workers are lost.
        """
        # Ctrl-C is raised in this thread. While it waits for futures, that could leave one of them locked, and the
        # threads of its pool would never end; so another thread waits for them.
        arrived: SimpleQueue[tuple[int, Any] | BaseException | None] = SimpleQueue()
        threading.Thread(target=self._collect, args=(method, parts, arrived), daemon=True).start()
        while isinstance(result := arrived.get(), tuple):
            yield result
        if result is not None:
            raise result

    def _collect(
        self,
        method: str,
        parts: Sequence[tuple[Any, ...]],
        arrived: "SimpleQueue[tuple[int, Any] | BaseException | None]",
    ) -> None:
        try:
            for result in self._results(method, parts):
                arrived.put(result)
            arrived.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised by `results`
            arrived.put(error)

    def _results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        pending = deque(range(len(parts)))
        running: dict[Future[Any], tuple[str, int]] = {}
        while (pending or running) and not self._ended:
            for name, pool in self._pools.items():
                busy = name in self._starting.values()
                for _ in range(0 if busy else 1 + PREFETCH - [worker for worker, _ in running.values()].count(name)):
                    if pending:
                        index = pending.popleft()
                        running[_submit(pool, partial(_call_object, method), parts[index])] = name, index
            if not running and not self._starting:
                raise WorkerLost(
                    f"All workers were killed ({', '.join(self._make)}), perhaps because memory ran out; free some "
                    "memory. Earlier results are kept."
                )
            done, _ = wait([*running, *self._starting], return_when=FIRST_COMPLETED)
            for future in done:
                name, part = running.pop(future, None) or (self._starting.pop(future), None)
                try:
                    value = future.result()
                except BrokenProcessPool:
                    self._lose(name)
                    pending.extendleft([] if part is None else [part])
                    continue
                if part is not None:
                    yield part, value

    def _lose(self, name: str) -> None:
        """Report a lost worker, once."""
        pool = None if self._ended else self._pools.pop(name, None)
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
            log_status(f"The worker on {name} was killed, perhaps because memory ran out; its work goes to the others.")


def _make_object(make: Callable[[], Any]) -> None:
    """Create the object of this worker, whose progress would be drawn over that of the parent process."""
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until it ends
    _objects.append(make())


def _call_object(method: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(_objects[0], method)(*arguments)
