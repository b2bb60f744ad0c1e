"""Answers from a Ray cluster: each worker has a backend of its own; what is asked and recorded stays here."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Self

from pluralbench_runs.cluster import IN_HAND, Cluster, ClusterError, Workers

from pluralbench_calls.errors import ConnectionFailed
from pluralbench_calls.records import Answer, Backend, PackingBackend, Request


class OnCluster:
    """Answers requests by backends that workers on a cluster make with `make`.

    at_once: requests that a worker has in hand. in_hand: those of all workers. The workers are there
    while `ask` is inside, and then make room.
    """

    def __init__(self, cluster: Cluster, make: Callable[[], Backend], *, at_once: int = IN_HAND) -> None:
        self.in_hand = cluster.workers * at_once
        self.concurrency: int | None = self.in_hand
        self._workers = Workers(cluster, partial(Answering, make), in_hand=at_once)

    async def __aenter__(self) -> Self:
        """Connect, and wait for the first worker. Raises `ConnectionFailed`, and what making a backend raises."""
        with _as_calls_error():
            self._workers.__enter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the workers."""
        self._workers.__exit__()

    async def send(self, request: Request) -> Answer:
        """Ask once, wherever there is a worker for it."""
        [answer] = await self._answers([request])
        return answer

    async def _answers(self, requests: Sequence[Request]) -> list[Answer]:
        with _as_calls_error():
            answers: list[Answer] = await self._workers.result("answers", list(requests))
        return answers


class PackingOnCluster(OnCluster):
    """The same of a backend that takes several requests in a message.

    packing: one of its kind here, which packs and is never entered.
    """

    def __init__(self, cluster: Cluster, make: Callable[[], PackingBackend], packing: PackingBackend) -> None:
        super().__init__(cluster, make)
        self._packing = packing

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """As it packs here."""
        return self._packing.pack(requests)

    def size(self, request: Request) -> int:
        """As it is here."""
        return self._packing.size(request)

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """The answers of a message, all at once."""
        yield await self._answers(requests)


class Answering:
    """What a worker has: a backend, which it enters with the first request."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._backend = make()
        self._entering, self._entered = asyncio.Lock(), False

    async def answers(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers to the requests of a message."""
        async with self._entering:
            if not self._entered:
                await self._backend.__aenter__()  # and it is left where the worker ends
                self._entered = True
        if isinstance(self._backend, PackingBackend):
            return [answer async for some in self._backend.send_packed(requests) for answer in some]
        return [await self._backend.send(request) for request in requests]


@contextmanager
def _as_calls_error() -> Iterator[None]:
    """What is wrong with a cluster as an error that says how many answers are recorded."""
    try:
        yield
    except ClusterError as error:
        raise ConnectionFailed(str(error)) from None
