"""Progress of long work, as a bar in a terminal or notebook and as occasional lines elsewhere; and its interruption."""

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn
from rich.table import Column

from pluralbench_runs.console import PlainConsole, make_console
from pluralbench_runs.secrets import redact

LINE_SECONDS = (3.5, 15.0)  # between two lines: at first, and once work has taken LONG_SECONDS
LONG_SECONDS = 120.0
STEP_SECONDS = 1.0  # shorter steps print nothing
STEP_LINE_SECONDS = 120.0  # at most between two lines of a step
BATCH_SECONDS = 0.5  # items that finish within this time are one batch, which took the time before its first

_hidden = ContextVar("_hidden", default=False)
_meters: list["Meter"] = []  # those that run, the innermost last
_kept_in: list[tuple[Path, Callable[[], bool]]] = []  # directories and whether they have work, the innermost last
announced: list[list[str]] = []  # for each command that runs, the sentence for its interruption
_announcing = threading.Lock()


class Meter:
    """Counts finished items and their cost in US dollars."""

    def __init__(self, label: str, total: int, console: Console, done: int = 0) -> None:
        self.console, self.is_bar = console, _draws(console)
        self._before, self._done, self._cost = done, done, 0.0
        self._started = self._last_line = self._newest = time.monotonic()
        self._batches = 0, 0.0  # items of the batches that are complete, and their seconds
        self._lock = threading.Lock()
        no_wrap = Column(no_wrap=True)  # in a narrow terminal the bar shrinks first
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(table_column=no_wrap),
            TextColumn("{task.fields[pace]}", table_column=no_wrap),
            TextColumn("{task.fields[cost]}"),
            TextColumn("{task.fields[note]}", markup=False),
        )
        self._bar = Progress(*columns, console=console, transient=True, get_time=time.monotonic)
        self._bar.add_task(label, total=total, completed=done, pace="", cost="", note="")
        if self.is_bar:
            self._bar.start()

    @property
    def _task(self) -> Task:
        return self._bar.tasks[0]

    @property
    def state(self) -> str:
        """The number of finished items, such as "66 of 224 (scoring)"."""
        return f"{self._done:,} of {self._task.total:,.0f} ({self._task.description})"

    def advance(self, cost: float = 0.0, note: str = "", *, items: int = 1) -> None:
        """Count finished items, with their cost in US dollars and a note to show after the numbers."""
        now = time.monotonic()
        if now - self._newest >= BATCH_SECONDS:
            self._batches = self._done - self._before, self._newest - self._started
        self._newest = now
        self._done += items
        self._cost += cost
        money = f"${self._cost:.2f}" if self._cost else ""
        self._bar.update(self._task.id, completed=self._done, cost=money, note=note)
        self.show_pace()

    def show_pace(self) -> None:
        """Show the pace in the bar; if none is drawn, print a line when the last one is some seconds old."""
        with self._lock:
            now, fields = time.monotonic(), self._task.fields
            if self.is_bar:
                self._bar.update(self._task.id, pace=" ".join(filter(None, self.pace(now))))
            elif now - self._last_line >= LINE_SECONDS[now - self._started >= LONG_SECONDS]:
                self._last_line = now
                self._print(f"{self._done} of {self._task.total}", *self.pace(now), fields["cost"], fields["note"])

    def show_remote(self, done: int, note: str) -> None:
        """Show how many of the remaining items a remote service has finished, before `advance` counts them."""
        shown = min(self._done + done, int(self._task.total or 0))
        if self.is_bar:
            self._bar.update(self._task.id, completed=shown, note=note)
        elif note != self._task.fields["note"] and time.monotonic() - self._last_line >= LINE_SECONDS[-1]:
            self._last_line = time.monotonic()
            self._bar.update(self._task.id, note=note)
            self._print(f"{shown} of {self._task.total}", note)

    def pace(self, now: float) -> tuple[str, str]:
        """Format the rate of the complete batches, and the time left, or so far while that is not known.

        rich's own rate is that of single items, of which a batch finishes hundreds in a moment.
        """
        complete = self._done - self._before, self._newest - self._started
        items, seconds = complete if now - self._newest >= BATCH_SECONDS else self._batches
        if not items or not seconds:
            return "", f"{_duration(now - self._started)} so far"
        unit, length = next(((unit, s) for unit, s in (("s", 1), ("min", 60)) if items * s >= seconds), ("h", 3600))
        left = self._newest - now + (self._task.remaining or 0) * seconds / items
        duration = f"{_duration(left)} left" if left > 0 else f"{_duration(now - self._started)} so far"
        return f"{items * length / seconds:.1f}/{unit}", duration

    def stop(self) -> None:
        """Remove the bar; if lines were printed instead, print a last one."""
        if self.is_bar:
            self._bar.stop()
        elif self._last_line != self._started:
            before = f" ({self._before} before)" if self._before else ""
            self._print(f"{self._done} of {self._task.total}{before} in {_duration(time.monotonic() - self._started)}")

    def _print(self, *parts: str) -> None:
        line = f"{self._task.description}: {', '.join(filter(None, parts))}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    """Format a duration in the unit that gives a short number."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _draws(console: Console) -> bool:
    """Whether a bar can be drawn. In a notebook, rich needs ipywidgets for it."""
    if console.is_jupyter:
        return find_spec("IPython") is not None and find_spec("ipywidgets") is not None
    return console.is_terminal


@contextmanager
def _repeating(show: Callable[[], None], first: float) -> Iterator[None]:
    """Call a function after `first` seconds and then every second, in a thread, while this context lasts."""
    ended = threading.Event()

    def repeat() -> None:
        wait = first
        while not ended.wait(wait):
            show()
            wait = 1.0

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Hide the progress of work in this context and thread, such as of scoring within another program's work."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


@contextmanager
def progress(label: str, total: int, console: Console | None = None, *, done: int = 0) -> Iterator[Meter]:
    """Show the progress of work; call `Meter.advance` for each item.

    Args:
        label: Name of the items, in the plural.
        total: Number of items.
        console: Where to write. Default: standard error.
        done: Number of items that were finished before.
    """
    if _hidden.get():
        console = Console(file=io.StringIO())
    meter = Meter(label, total, console or PlainConsole(stderr=True), done)
    _meters.append(meter)
    try:
        with _repeating(meter.show_pace, 1.0):
            yield meter
    except KeyboardInterrupt:
        announce_interruption()
        raise
    finally:
        _meters.remove(meter)
        meter.stop()


@contextmanager
def step(label: str) -> Iterator[None]:
    """Show that work without a count goes on: a line after a second, then one whenever its time has doubled."""
    started = time.monotonic()
    shown: list[float] = []

    def show() -> None:
        now = time.monotonic()
        if not shown:
            log_status(f"{label}...")
        elif now - shown[-1] >= min(max(LINE_SECONDS[0], shown[-1] - started), STEP_LINE_SECONDS):
            log_status(f"{label}: {_duration(now - started)} so far")
        else:
            return
        shown.append(now)

    with _repeating(show, STEP_SECONDS):
        yield


def log_status(line: str) -> None:
    """Print a line about the next step of long work to standard error, or above the bar that is drawn.

    Secrets of the environment are left out: a key may be given in place of a model's name.
    """
    bar = next((meter.console for meter in reversed(_meters) if meter.is_bar), None)
    console = bar or make_console(stderr=True, force_jupyter=False)  # in a notebook, too, this is no result of a cell
    console.print(redact(line), highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def keeping_work(folder: Path, has_work: Callable[[], bool]) -> Iterator[None]:
    """Name the directory that keeps finished work, if this context is interrupted and `has_work`."""
    entry = (folder, has_work)
    _kept_in.append(entry)
    try:
        yield
    except KeyboardInterrupt:
        announce_interruption()
        raise
    finally:
        _kept_in.remove(entry)


def announce_interruption() -> None:
    """Print the sentence for an interruption of a command, once."""
    with _announcing:
        if announced and not announced[-1]:
            announced[-1].append(interruption())
            with suppress(OSError):  # standard error is closed
                log_status(announced[-1][0])


def interruption() -> str:
    """Return the sentence for an interruption now."""
    sentence = f"Interrupted at {_meters[-1].state}." if _meters else "Interrupted."
    for folder, has_work in _kept_in:
        with suppress(OSError):  # the directory changes meanwhile
            if has_work():
                return f"{sentence} Finished work is kept in {folder}; rerun the same command to resume."
    return f"{sentence} Nothing of this step is kept; rerun the same command." if _kept_in else sentence
