"""Run asynchronous work from a plain function, also where an event loop runs already, as in a notebook."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")
LOOK_UP = 0.1  # seconds between two looks at whether the work should end


def run(work: Coroutine[Any, Any, Value]) -> Value:
    """What `work` returns or raises. Blocks until it is done; Ctrl-C cancels it and raises `KeyboardInterrupt`.

    A thread can run one loop at a time, so where this thread's loop runs already, the work gets a thread of its own,
    with a copy of the context variables.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Value]]] = Future()

    async def known() -> Value:
        task = asyncio.create_task(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(contextvars.copy_context().run, asyncio.run, known())
        try:
            _wait_for(done)
            return done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            with suppress(RuntimeError):  # the loop is closed: the work was done just then
                loop.call_soon_threadsafe(task.cancel)
            raise


def _wait_for(done: Future[Any]) -> None:
    """Raises `KeyboardInterrupt`, also where Ctrl-C cancels the task that waits, as it does under `asyncio.run`."""
    caller = asyncio.current_task()
    before = caller.cancelling() if caller else 0
    while not wait([done], LOOK_UP).done:
        if caller and caller.cancelling() > before:
            raise KeyboardInterrupt
