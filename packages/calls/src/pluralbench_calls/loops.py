"""Running of coroutines from synchronous code, also inside a running event loop, such as a notebook's."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")
POLL_SECONDS = 0.1  # between two checks for an interrupt


def run(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine to its end and return its result; Ctrl-C cancels it and raises `KeyboardInterrupt`.

    If this thread already runs an event loop, it runs in another thread, with a copy of the context variables.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Value]]] = Future()

    async def run_task() -> Value:
        task = asyncio.create_task(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(contextvars.copy_context().run, asyncio.run, run_task())
        try:
            _wait_for(done)
            return done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            with suppress(RuntimeError):  # the loop is closed: the work just ended
                loop.call_soon_threadsafe(task.cancel)
            raise


def _wait_for(done: Future[Any]) -> None:
    """Wait, and raise `KeyboardInterrupt` also if Ctrl-C cancels the waiting task, as under `asyncio.run`."""
    caller = asyncio.current_task()
    before = caller.cancelling() if caller else 0
    while not wait([done], POLL_SECONDS).done:
        if caller and caller.cancelling() > before:
            raise KeyboardInterrupt
