"""Progress of long work: a bar in a terminal or notebook, occasional lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from pluralbench_runs.console import PlainConsole, make_console

LINE_SECONDS = (3.5, 15.0)  # between two lines: at first, and once work has taken LONG_SECONDS
LONG_SECONDS = 120.0
STEP_SECONDS = 1.0  # shorter steps print nothing
BATCH_SECONDS = 0.5  # items that finish within this time are one observation of the pace

ANNOUNCEMENT_SECONDS = 0.5  # an interrupt without a signal is never announced

announcements: list[threading.Event] = []  # set when an interrupt has been announced
_meters: list["Meter"] = []  # those that run, the innermost last


class Meter:
    """Counts finished items and their cost in US dollars."""

    def __init__(self, label: str, total: int, console: Console, done: int = 0) -> None:
        self._label, self._total, self.console = label, total, console
        self._before, self._done, self._cost, self._started = done, done, 0.0, time.monotonic()
        self._last_line, self._note = self._started, ""
        # Start, last item and count of each batch: the first, which includes warming up, the last full one, the newest.
        self._batches: list[tuple[float, float, int]] = []
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        if _draws(console):
            no_wrap = Column(no_wrap=True)  # in a narrow terminal the bar shrinks first
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(table_column=no_wrap),
                TextColumn("{task.fields[rate]}"),
                _TimeLeft(table_column=no_wrap),
                TextColumn("{task.fields[cost]}"),
                TextColumn("{task.fields[note]}", markup=False),
            )
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(
                label, total=total, completed=done, rate="", cost="", note="", started=self._started, end=None
            )
            self._bar.start()

    @property
    def is_bar(self) -> bool:
        """Whether a bar is drawn."""
        return self._bar is not None

    @property
    def state(self) -> str:
        """The number of finished items, such as "66 of 224 (scoring)"."""
        return f"{self._done:,} of {self._total:,} ({self._label})"

    def advance(self, cost: float = 0.0, note: str = "") -> None:
        """Count one more finished item.

        Args:
            cost: Its cost in US dollars.
            note: Text to show after the numbers.
        """
        self._done += 1
        self._cost += cost
        self._note = note
        now = time.monotonic()
        if not self._batches or now - self._batches[-1][0] >= BATCH_SECONDS:
            self._batches = [*self._batches[:1], *self._batches[1:][-1:], (now, now, self._done)]
        else:
            self._batches[-1] = (self._batches[-1][0], now, self._done)
        if self._bar is None:
            self.show_line()
            return
        pace, end = self._pace(now)
        money = f"${self._cost:.2f}" if self._cost else ""
        rate = "" if pace is None else _rate(pace)
        self._bar.update(self._task, completed=self._done, rate=rate, cost=money, note=note, end=end)

    def _pace(self, now: float) -> tuple[float | None, float | None]:
        """Return the seconds per item and the time when all are finished; None before two batches are.

        The first batch only starts the clock: it includes what is done once. The newest may be incomplete.
        """
        full = self._batches if self._batches and now - self._batches[-1][0] >= BATCH_SECONDS else self._batches[:-1]
        if len(full) < 2:
            return None, None
        (_, began, before), (_, last, count) = full[0], full[-1]
        pace = (last - began) / (count - before)
        return pace, self._batches[-1][1] + (self._total - self._done) * pace

    def show_line(self) -> None:
        """Print a line, if no bar is drawn and the last line is some seconds old."""
        with self._lock:
            now = time.monotonic()
            if self._bar is not None or now - self._last_line < _interval(now - self._started):
                return
            self._last_line = now
            pace, end = self._pace(now)
            money = f"${self._cost:.2f}" if self._cost else ""
            rate = "" if pace is None else _rate(pace)
            count = f"{self._label}: {self._done} of {self._total}"
            parts = [count, rate, _time_left(self._started, end), money, self._note]
            self._print(", ".join(part for part in parts if part))

    def show_remote(self, done: int, note: str) -> None:
        """Show how many of the remaining items are finished at a remote service, before they are fetched and counted.

        Args:
            done: Number of finished items that were not yet counted by `advance`.
            note: Text to show after the numbers.
        """
        shown = min(self._done + done, self._total)
        if self._bar is not None:
            self._bar.update(self._task, completed=shown, note=note)
        elif note != self._note and time.monotonic() - self._last_line >= LINE_SECONDS[-1]:
            self._last_line, self._note = time.monotonic(), note
            self._print(f"{self._label}: {shown} of {self._total}, {note}")

    def stop(self) -> None:
        """Remove the bar; if lines were printed instead, print a last one."""
        if self._bar is not None:
            self._bar.stop()
        elif self._last_line != self._started:
            seconds = time.monotonic() - self._started
            before = f" ({self._before} before)" if self._before else ""
            self._print(f"{self._label}: {self._done} of {self._total}{before} in {_duration(seconds)}")

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


class _TimeLeft(ProgressColumn):
    """The time left, counting down between items; the time elapsed while it is not known.

    Unlike rich's own column, it also works if an item takes longer than half a minute.
    """

    def render(self, task: Task) -> Text:
        """Render the column."""
        return Text(_time_left(task.fields["started"], task.fields["end"]))


def _time_left(started: float, end: float | None) -> str:
    """Format the time left; the time elapsed if the end is not known or has passed."""
    now = time.monotonic()
    return f"{_duration(now - started)} so far" if end is None or end < now else f"{_duration(end - now)} left"


def _rate(pace: float) -> str:
    """Format a rate in the smallest unit of time with at least one item. pace: seconds per item."""
    unit, seconds = next(((unit, s) for unit, s in (("s", 1), ("min", 60)) if pace <= s), ("h", 3600))
    return f"{seconds / pace:.1f}/{unit}"


def _duration(seconds: float) -> str:
    """Format a duration in the unit that gives a short number."""
    seconds = max(seconds, 0.0)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _draws(console: Console) -> bool:
    """Whether a bar can be drawn. In a notebook, rich needs ipywidgets for it."""
    if console.is_jupyter:
        return find_spec("IPython") is not None and find_spec("ipywidgets") is not None
    return console.is_terminal


def _interval(elapsed: float) -> float:
    """Return the seconds between two lines of work that has taken so long."""
    return LINE_SECONDS[elapsed >= LONG_SECONDS]


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
def progress(label: str, total: int, console: Console | None = None, *, done: int = 0) -> Iterator[Meter]:
    """Show the progress of work; call `Meter.advance` once for each item.

    A terminal, or a notebook with ipywidgets, shows a bar. Anything else gets a line every few seconds.

    Args:
        label: Name of the items, in the plural.
        total: Number of items.
        console: Where to write. Default: standard error.
        done: Number of items that were finished before.
    """
    meter = Meter(label, total, console or PlainConsole(stderr=True), done)
    _meters.append(meter)
    try:
        with _repeating(meter.show_line, LINE_SECONDS[0]):
            yield meter
    except KeyboardInterrupt:
        await_announcement()
        raise
    finally:
        _meters.remove(meter)
        meter.stop()


def await_announcement() -> None:
    """Wait until the thread that announces an interrupt has read what is interrupted, which ends with its context."""
    for announcement in announcements:
        announcement.wait(ANNOUNCEMENT_SECONDS)


def current_progress() -> str:
    """Return how far the innermost counted work is, such as "66 of 224 (scoring)"; empty if nothing is counted."""
    return _meters[-1].state if _meters else ""


@contextmanager
def step(label: str) -> Iterator[None]:
    """Show that work without a count goes on: a line after a second, and then one every few seconds.

    Args:
        label: What is done, such as "Loading my-model".
    """
    started = time.monotonic()
    shown: list[float] = []

    def show() -> None:
        now = time.monotonic()
        if not shown:
            log_status(f"{label}...")
        elif now - shown[-1] >= _interval(now - started):
            log_status(f"{label}: {_duration(now - started)} so far")
        else:
            return
        shown.append(now)

    with _repeating(show, STEP_SECONDS):
        yield


def log_status(line: str) -> None:
    """Print a line about the next step of long work to standard error, or above the bar that is drawn."""
    console = next((meter.console for meter in reversed(_meters) if meter.is_bar), None) or make_console(stderr=True)
    console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)
