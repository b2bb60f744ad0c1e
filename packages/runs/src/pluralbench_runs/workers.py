"""Parallel map over processes or a Ray cluster, with the results of one process in the same order."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from typing import Protocol, TypeVar

from pluralbench_runs.cluster import ClusterConfig, Workers
from pluralbench_runs.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

PREFETCH = 1  # items that are submitted ahead, so that no worker waits for the next


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


@contextmanager
def cluster_workers(cluster: ClusterConfig) -> Iterator[ParallelMap]:
    """Open a map over the workers of a Ray cluster, to which all items are submitted at once.

    Raises:
        ClusterError: The cluster cannot be used.
    """
    with Workers(cluster, _Caller) as pool:
        yield partial(_map_on_cluster, pool)


class _Caller:
    """The object in each worker of a cluster."""

    def call(self, function: Callable[[Item], Result], item: Item) -> Result:
        return function(item)


def _map_on_cluster(
    pool: Workers[_Caller], function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    ready: dict[int, Result] = {}
    next_index = 0
    for index, result in pool.results("call", [(function, item) for item in items]):
        ready[index] = result
        while next_index in ready:
            yield ready.pop(next_index)
            next_index += 1


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
