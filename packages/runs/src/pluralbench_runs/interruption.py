"""A sentence at once after Ctrl-C: how far the work is, what is kept, and how to resume.

Python runs signal handlers between two operations of its own, and one of torch may take many seconds. The sentence is
therefore printed by a thread, which the interpreter's signal handler wakes through a socket.
"""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pluralbench_runs.progress import announcements, await_announcement, current_progress, log_status

_kept_in: list[Path] = []  # working directories, the innermost last


@contextmanager
def keeping_work(work: Path) -> Iterator[None]:
    """Name the directory that keeps finished work, if this context is interrupted."""
    _kept_in.append(work)
    try:
        yield
    except KeyboardInterrupt:
        await_announcement()
        raise
    finally:
        _kept_in.remove(work)


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
    kept = f" Finished work is kept in {_kept_in[0]}; rerun the same command to resume." if _kept_in else ""
    return sentence + kept
