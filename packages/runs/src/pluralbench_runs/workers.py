"""Work in several processes at once, with the same results in the same order as in one."""

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

AHEAD = 1  # items that wait beside those that are worked on, so that no worker waits for the next


class WorkerLost(UserError):
    """A worker process that ended by itself."""


class ParallelMap(Protocol):
    """Calls a function with each item, and gives what it returns, or raises what it raises, in the order of the items.

    Items are taken as they are needed, a few ahead.
    """

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """The results."""


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def workers(processes: int) -> Iterator[ParallelMap]:
    """Work in so many processes of their own, or in this one where `processes` is 1.

    Functions, items and results travel between processes, so they must be such as `pickle` takes. The processes begin
    anew (`spawn`), as libraries with threads need it: a script that asks for more than one does so under
    `if __name__ == "__main__":`. Ctrl-C is this process's alone; the workers end once they are done with what they
    have in hand.

    Raises `WorkerLost` where a worker is killed, as a system does that is out of memory.
    """
    if processes == 1:
        yield map
        return
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield partial(_in_order, pool, processes + AHEAD)
    except BrokenProcessPool:
        raise WorkerLost(
            "A worker process was ended from outside, as happens where memory runs out; free some memory, or set "
            "`processes` to 1."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def cluster_workers(cluster: ClusterConfig) -> Iterator[ParallelMap]:
    """The same on a Ray cluster, to which all items go at once. Raises `ClusterError`."""
    with Workers(cluster, _Caller) as crew:
        yield partial(_in_their_order, crew)


class _Caller:
    """What a worker of a cluster has."""

    def call(self, function: Callable[[Item], Result], item: Item) -> Result:
        return function(item)


def _in_their_order(
    crew: Workers[_Caller], function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    ready: dict[int, Result] = {}
    following = 0
    for place, result in crew.results("call", [(function, item) for item in items]):
        ready[place] = result
        while following in ready:
            yield ready.pop(following)
            following += 1


def _in_order(
    pool: ProcessPoolExecutor, most: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(_submitted(pool, function, item))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _submitted(pool: ProcessPoolExecutor, function: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Hand an item over. A process that is started for it never sees a Ctrl-C, which would end it with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return pool.submit(function, item)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # which a new process inherits
    try:
        return pool.submit(function, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
