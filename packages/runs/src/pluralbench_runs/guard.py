"""The guard round every command: whatever goes wrong leaves as a sentence and an exit status, never a traceback."""

import errno
import io
import os
import re
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from urllib.parse import urlsplit

from pluralbench_runs.console import make_console
from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.secrets import PROXY, redact

MISTAKE = 2  # exit statuses; these two are also those of click and of a shell
INTERRUPTED, TERMINATED = 130, 143
FAULT = 70  # EX_SOFTWARE of sysexits.h
DEBUG = "PLURALBENCH_DEBUG"

FULL_DISK = (
    "The disk is full ({where}); nothing that was recorded is lost: free some space and run the same command again."
)
NO_MEMORY = "There is not enough memory; give the command less at a time, or run it on a larger machine."
ENCODING = (
    "A name or text cannot be written in the encoding {encoding} of this system; set the environment variable LC_ALL "
    "to C.UTF-8 and run the same command again."
)
NO_PROXY = (
    "The environment variable {name} holds no proxy of the form http://HOST:PORT; mend or unset it and run the same "
    "command again."
)
# By what SQLite says, the mend.
LEDGER = {
    "disk I/O error": "nothing that was recorded is lost: mend the disk",
    "readonly database": "nothing that was recorded is lost: mend its permissions",
    "unable to open": "mend the permissions of its folder",
    "locked": "another process is writing it: wait for it and run the same command again",
    "malformed": "it is damaged: put a copy in its place, or start over with `fresh`",
    "not a database": "it is damaged: put a copy in its place, or start over with `fresh`",
}
# By what the system says, the mend.
MENDS = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose another place or mend its permissions"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "check the path"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (`ulimit -n`)"),
    errno.EISDIR: "give a file, not a folder",
    errno.ELOOP: "remove the link that leads back to itself",
    errno.ENAMETOOLONG: "choose a shorter name",
}
OTHERWISE = "nothing that was recorded is lost: mend that and run the same command again"

RUST = re.compile(r"\(os error (\d+)\)")  # so libraries in Rust (polars, safetensors) pass on what the system says
CLIENTS = {"aiohttp", "httpcore", "httpcore2", "httpx", "httpx2", "requests", "urllib", "urllib3"}
USER = re.compile(r"(?<=://)[^/\s?#@]+(?=@)")  # the user and password of any URL


def run_cli(work: Callable[[], object], program: str, mistakes: tuple[type[Exception], ...] = ()) -> int:
    """Do `work` and return the exit status; what it raises becomes one sentence on standard error.

    program: its name, for a sentence that tells of a fault of its own. mistakes: exceptions whose message is meant for
    the user. The status is `UserError.exit_status`, 2 for mistakes and for what the system refuses, 130 after an
    interrupt, 143 after SIGTERM, and 70 for a fault of the program. With PLURALBENCH_DEBUG=1 a traceback precedes the
    sentence. Neither shows a secret of the environment.
    """
    _take_any_text()
    with _sigterm_interrupts() as terminated:
        status = _status(work, program, mistakes)
        return TERMINATED if terminated and status == INTERRUPTED else status


def _status(work: Callable[[], object], program: str, mistakes: tuple[type[Exception], ...]) -> int:
    try:
        status = _exit_status_of(work)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told of
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - a panic of polars is no Exception
        sentence, status = _error_sentence(_first(error), program, mistakes)
        _print_error(error, sentence)
    return status


def _exit_status_of(work: Callable[[], object]) -> int:
    try:
        work()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


@contextmanager
def _sigterm_interrupts() -> Iterator[list[int]]:
    """SIGTERM, where nobody else takes it, does what Ctrl-C does; the list is empty until then."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        on_interrupt = signal.getsignal(signal.SIGINT)  # under asyncio it cancels the work in good order
        if not callable(on_interrupt):
            raise KeyboardInterrupt
        on_interrupt(signal.SIGINT, frame)

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _take_any_text() -> None:
    """Let the output have characters that its encoding lacks, as `\\u4e2d`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _first(error: BaseException) -> BaseException:
    """The exception itself, or the first of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _error_sentence(error: BaseException, program: str, mistakes: tuple[type[Exception], ...]) -> tuple[str, int]:
    """The sentence about an error, and its exit status."""
    if isinstance(error, UserError):
        return str(error), error.exit_status
    if isinstance(error, mistakes):
        return str(error), MISTAKE
    known = _proxy(error) or _encoding(error) or _ledger(error) or _system(error)
    if known:
        return known, MISTAKE
    return (
        f"{program} met a fault of its own ({one_line(f'{type(error).__name__}: {error}')}); nothing that was recorded "
        f"is lost. Please report it with what the same command says where the environment variable {DEBUG} is 1.",
        FAULT,
    )


def _proxy(error: BaseException) -> str:
    """The sentence where a client of the network failed and a proxy variable is no proxy's address; else ""."""
    raised_in = {str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)}
    if not CLIENTS & {module.partition(".")[0] for module in raised_in}:
        return ""
    bad = next((name for name, url in os.environ.items() if PROXY.fullmatch(name) and not _is_proxy(url)), "")
    return NO_PROXY.format(name=bad) if bad else ""


def _is_proxy(url: str) -> bool:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        return not url or (parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        return False


def _encoding(error: BaseException) -> str:
    return ENCODING.format(encoding=error.encoding) if isinstance(error, UnicodeEncodeError) else ""


def _ledger(error: BaseException) -> str:
    if not isinstance(error, sqlite3.Error):
        return ""
    said = str(error)
    if "disk is full" in said:
        return FULL_DISK.format(where=said)
    mend = next((mend for words, mend in LEDGER.items() if words in said), "")
    return f"The ledger cannot be used ({said}); {mend}." if mend else ""


def _system(error: BaseException) -> str:
    """The sentence about what the system refuses, with its place; "" for other errors."""
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if not isinstance(error, OSError):
        found = RUST.search(str(error))
        if found is None:
            return ""
        error = OSError(int(found[1]), os.strerror(int(found[1])))
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return FULL_DISK.format(where=error.filename or "while writing")
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    place = f" ({' to '.join(places)})" if places else ""
    mend = MENDS.get(errno.EACCES if isinstance(error, PermissionError) else error.errno or 0, OTHERWISE)
    return f"{one_line(error.strerror or str(error) or type(error).__name__)}{place}; {mend}."


def _print_error(error: BaseException, sentence: str) -> None:
    with suppress(OSError):  # nobody reads it
        if os.environ.get(DEBUG, "0") not in {"", "0"}:
            _print("".join(traceback.format_exception(error)))
        _print(f"Error: {sentence}")


def _print(text: str) -> None:
    shown = USER.sub("[key]", redact(text))
    make_console(stderr=True).print(shown)
