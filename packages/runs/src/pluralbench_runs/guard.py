"""Error handling of commands: every error becomes one sentence and an exit status, never a traceback."""

import errno
import gc
import io
import logging
import os
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

import typer
from pydantic import ValidationError

from pluralbench_runs.console import make_console
from pluralbench_runs.errors import UserError, did_you_mean, one_line, shorten
from pluralbench_runs.meters import announce_interruption, announced
from pluralbench_runs.secrets import redact

USER_ERROR = 2  # exit statuses; this one is also that of click
INTERRUPTED, TERMINATED = 130, 143  # also those of a shell
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
POSTPONED = 75  # EX_TEMPFAIL: the same command continues later, which is no error
DEBUG = "PLURALBENCH_DEBUG"

FULL_DISK = "The disk is full ({where}). Recorded work is not lost; free some space and rerun the same command."
NO_MEMORY = "Out of memory; process less at a time, or use a machine with more memory."
# What to do about an error of the system, by its number.
SYSTEM_FIXES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose another place, or change its permissions"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "check the path"),
}
DEFAULT_FIX = "recorded work is not lost; fix the cause and rerun the same command"

FULL = {errno.ENOSPC, errno.EDQUOT}
RUST = re.compile(r"\(os error (\d+)\)")  # where libraries in Rust (polars, safetensors) put the number of the error
USER = re.compile(r"(?<=://)[^/\s?#@]+(?=@)")  # user and password in a URL
NUMBERS = {
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "greater_than": "is not more than {gt}",
    "less_than": "is not less than {lt}",
}
"""The end of the sentence, by the type of pydantic's error."""


def run(work: Callable[[], object], program: str, *, mistakes: tuple[type[Exception], ...] = ()) -> NoReturn:
    """Run a command, print any error as one sentence to standard error, and exit.

    The status is 0 after success, `UserError.exit_status`, 2 for `mistakes` and system errors, 70 for an internal
    error, 130 after Ctrl-C, 143 after SIGTERM, or that of `SystemExit`. With PLURALBENCH_DEBUG=1 a traceback precedes
    the sentence. Neither shows a secret of the environment.
    """
    # What is imported stays. To look through it for garbage after each 700 objects takes a seventh of torch's import.
    gc.set_threshold(10_000, 20, 20)
    # It warns of a home that it cannot write to, and then uses a temporary directory.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    _allow_any_character()
    with _interrupts() as (sentences, signals):
        error, status = _run(work)
    if error is not None:
        sentence, status = _error_sentence(error, program, mistakes)
        if status == INTERNAL_ERROR and sentences:
            status = INTERRUPTED  # what an interrupt became, such as a panic of polars while it called Python
        else:
            _print_error(error, sentence)
    sys.exit(TERMINATED if signals and status == INTERRUPTED else status)


def _run(work: Callable[[], object]) -> tuple[BaseException | None, int]:
    """Return the error of the work, and the status of work without an error."""
    try:
        try:
            status = work()
        except SystemExit as error:
            status = error.code
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk can still be reported here
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None, 1
    except KeyboardInterrupt:
        return None, INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - a panic of polars is not an Exception
        return (None, INTERRUPTED) if isinstance(error.__cause__, KeyboardInterrupt) else (error, USER_ERROR)
    return None, status if isinstance(status, int) else 0


@contextmanager
def _interrupts() -> Iterator[tuple[list[str], list[int]]]:
    """Announce SIGINT and SIGTERM at once, and handle SIGTERM like Ctrl-C unless the program handles it.

    Python runs signal handlers between two operations of its own, and one of torch may take many seconds. So a thread
    prints the sentence, which the interpreter's signal handler wakes through a socket.

    Yields:
        The sentence, once it is printed, and SIGTERM, once it arrives.
    """
    sentences: list[str] = []
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield sentences, signals
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        on_interrupt = signal.getsignal(signal.SIGINT)  # under asyncio it cancels the task
        if not callable(on_interrupt):
            raise KeyboardInterrupt
        on_interrupt(signal.SIGINT, frame)

    def announce() -> None:
        while numbers := reader.recv(1):
            if numbers[0] in {signal.SIGINT, signal.SIGTERM}:
                announce_interruption()

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    thread = threading.Thread(target=announce, daemon=True)
    thread.start()
    announced.append(sentences)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    is_handled = signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    if not is_handled:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield sentences, signals
    finally:
        if not is_handled:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(before)
        writer.close()
        thread.join()
        reader.close()
        announced.remove(sentences)


@contextmanager
def unannounced_interrupts() -> Iterator[None]:
    """Print no sentence when a signal arrives in this context, which ends in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)


def _allow_any_character() -> None:
    """Write characters that the encoding of the output lacks as `\\u4e2d`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _error_sentence(error: BaseException, program: str, mistakes: tuple[type[Exception], ...]) -> tuple[str, int]:
    """Return the message for an error, or for the first of a group, and the exit status."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, UserError):
        return str(error), error.exit_status
    if isinstance(error, mistakes):
        return shorten(str(error)), USER_ERROR
    if isinstance(error, typer.TyperException):
        return usage_sentence(error), USER_ERROR
    if message := _system_message(error):
        return message, USER_ERROR
    return (
        f"Internal error in {program} ({one_line(f'{type(error).__name__}: {error}')}). Recorded work is not lost. "
        f"Please report this with the output of the same command with the environment variable {DEBUG}=1.",
        INTERNAL_ERROR,
    )


def _system_message(error: BaseException) -> str:
    """Return the message for an error of the system, with its files; "" for other errors."""
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if _fills_disk(error):
        return FULL_DISK.format(where=getattr(error, "filename", None) or "while writing")
    if not isinstance(error, OSError):
        return ""
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    place = f" ({' to '.join(places)})" if places else ""
    fix = SYSTEM_FIXES.get(errno.EACCES if isinstance(error, PermissionError) else error.errno or 0, DEFAULT_FIX)
    return f"{one_line(error.strerror or str(error) or type(error).__name__)}{place}; {fix}."


def _fills_disk(error: BaseException) -> bool:
    match = RUST.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(match[1]) if match else None
    return number in FULL or getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"


def _print_error(error: BaseException, sentence: str) -> None:
    if not sentence:  # --help was shown
        return
    with suppress(OSError):  # standard error is closed
        if os.environ.get(DEBUG, "0") not in {"", "0"}:
            _print("".join(traceback.format_exception(error)))
        _print(sentence if getattr(error, "exit_status", None) == POSTPONED else f"Error: {sentence}")


def _print(text: str) -> None:
    shown = USER.sub("[key]", redact(text))
    make_console(stderr=True).print(shown)


def usage_sentence(error: typer.TyperException) -> str:
    """Return the sentence for an unknown option, or for a value of a wrong type or out of bounds; "" after --help."""
    context, option, invalid = (getattr(error, name, None) for name in ("ctx", "param", "__cause__"))
    if not isinstance(invalid, ValidationError) or option is None:
        message = error.format_message().rstrip(".?")
        hint = f" See `{context.command_path} --help`." if context is not None else ""
        return f"{message}.{hint}" if message else ""
    named = option.opts[0] if option.param_type_name == "option" else option.metavar
    return value_sentence(named, invalid)


def value_sentence(option: str, error: ValidationError) -> str:
    """Return the sentence for a value that its type or its model refuses."""
    first = error.errors()[0]
    value = one_line(first["input"], 80)
    if first["type"] in NUMBERS:
        return f"{option} {value} {NUMBERS[first['type']].format(**first.get('ctx', {}))}."
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    _, is_choice, choices = message.replace("'", "").partition(" is not one of ")
    if not is_choice:
        return f"{option}: {message}." if option else f"{message}."
    hint = did_you_mean(value, choices.split(", ")).strip()
    return f"{option} {value} is not one of {choices}{f'; {hint}' if hint else '.'}"
