"""A sentence at once after Ctrl-C: how far the work is, what is kept, and how to resume.

Python runs signal handlers between two operations of its own, and one of torch may take many seconds. The sentence is
therefore printed by a thread, which the interpreter's signal handler wakes through a socket.
"""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pluralbench_runs.meters import announcements, await_announcement, current_progress, log_status

_kept_in: list[tuple[Path, Callable[[], bool]]] = []  # directories and whether they have work, the innermost last


@contextmanager
def keeping_work(folder: Path, has_work: Callable[[], bool]) -> Iterator[None]:
    """Name the directory that keeps finished work, if this context is interrupted.

    Args:
        folder: The directory.
        has_work: Whether it has any, called from another thread.
    """
    entry = (folder, has_work)
    _kept_in.append(entry)
    try:
        yield
    except KeyboardInterrupt:
        await_announcement()
        raise
    finally:
        _kept_in.remove(entry)


@contextmanager
def announced_interrupts() -> Iterator[list[str]]:
    """Print a sentence when SIGINT or SIGTERM arrives in this context, and add it to the list that is yielded."""
    announced: list[str] = []
    if threading.current_thread() is not threading.main_thread():
        yield announced
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    announcement = threading.Event()

    def announce() -> None:
        while numbers := reader.recv(1):
            if numbers[0] in {signal.SIGINT, signal.SIGTERM} and not announced:
                announced.append(interruption())
                with suppress(OSError):  # standard error is closed
                    log_status(announced[0])
                announcement.set()

    thread = threading.Thread(target=announce, daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    announcements.append(announcement)
    try:
        yield announced
    finally:
        announcements.remove(announcement)
        signal.set_wakeup_fd(before)
        writer.close()
        thread.join()
        reader.close()


def interruption() -> str:
    """Return the sentence for an interruption now."""
    state = current_progress()
    sentence = f"Interrupted at {state}." if state else "Interrupted."
    for folder, has_work in _kept_in:
        with suppress(OSError):  # the directory changes meanwhile
            if has_work():
                return f"{sentence} Finished work is kept in {folder}; rerun the same command to resume."
    return f"{sentence} Nothing of this step is kept; rerun the same command." if _kept_in else sentence
