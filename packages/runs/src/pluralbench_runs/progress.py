"""Progress of long work: a bar in a terminal or notebook, occasional lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from pluralbench_runs.console import PlainConsole, make_console

QUIET_SECONDS = 15.0


class Meter:
    """Counts finished items and their cost in US dollars."""

    def __init__(self, label: str, total: int, console: Console) -> None:
        self._label, self._total, self._console = label, total, console
        self._done, self._cost, self._started = 0, 0.0, time.monotonic()
        self._last_line, self._note = self._started, ""
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
                label, total=total, rate="", cost="", note="", started=self._started, end=None
            )
            self._bar.start()

    def advance(self, cost: float = 0.0, note: str = "") -> None:
        """Count one more finished item.

        Args:
            cost: Its cost in US dollars.
            note: Text to show after the numbers.
        """
        self._done += 1
        self._cost += cost
        now = time.monotonic()
        if self._bar is None and now - self._last_line < QUIET_SECONDS:
            return
        pace = max(now - self._started, 1e-9) / self._done
        left = (self._total - self._done) * pace
        rate = _rate(pace)
        money = f"${self._cost:.2f}" if self._cost else ""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, rate=rate, cost=money, note=note, end=now + left)
        else:
            self._last_line = now
            parts = [f"{self._label}: {self._done} of {self._total}", rate, f"{_duration(left)} left", money, note]
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
        elif note != self._note and time.monotonic() - self._last_line >= QUIET_SECONDS:
            self._last_line, self._note = time.monotonic(), note
            self._print(f"{self._label}: {shown} of {self._total}, {note}")

    def stop(self) -> None:
        """Remove the bar; if lines were printed instead, print a last one."""
        if self._bar is not None:
            self._bar.stop()
        elif self._last_line != self._started:
            seconds = time.monotonic() - self._started
            self._print(f"{self._label}: {self._done} of {self._total} in {_duration(seconds)}")

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


class _TimeLeft(ProgressColumn):
    """The time left, counting down between items; the time elapsed until the first item is finished.

    Unlike rich's own column, it also works if an item takes longer than half a minute.
    """

    def render(self, task: Task) -> Text:
        """Render the column."""
        end = task.fields["end"]
        now = time.monotonic()
        started = task.fields["started"]
        text = f"{_duration(now - started)} so far" if end is None else f"{_duration(end - now)} left"
        return Text(text)


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


@contextmanager
def progress(label: str, total: int, console: Console | None = None) -> Iterator[Meter]:
    """Show the progress of work; call `Meter.advance` once for each item.

    A terminal, or a notebook with ipywidgets, shows a bar. Anything else gets a line every 15 seconds.

    Args:
        label: Name of the items, in the plural.
        total: Number of items.
        console: Where to write. Default: standard error.
    """
    meter = Meter(label, total, console or PlainConsole(stderr=True))
    try:
        yield meter
    finally:
        meter.stop()


def log_status(line: str) -> None:
    """Print a line about the next step of long work to standard error."""
    make_console(stderr=True).print(line)
