"""Progress of long work: quiet lines where nobody watches, a bar on a terminal and in a notebook."""

import io
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
from pluralbench_runs import progress
from rich.console import Console


@pytest.fixture
def sleep(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass, at once."""
    now = [1000.0]

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return pass_by


def quiet() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=False, width=40), file


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setenv("TERM", "xterm")
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=80)


def written(terminal: Console) -> str:
    assert isinstance(terminal.file, io.StringIO)
    return terminal.file.getvalue()


NOTE = {"cost": 0.01, "note": "loss 0.5 [茶]"}


@pytest.mark.parametrize(
    ("total", "steps", "lines"),
    [
        (3, [(4, {})] * 3, []),
        (
            5,
            [(10, {"cost": 0.01})] * 5,
            [
                "Answers: 2 of 5, 6.0/min, 30 s left, $0.02",
                "Answers: 4 of 5, 6.0/min, 10 s left, $0.04",
                "Answers: 5 of 5 in 50 s",
            ],
        ),
        (
            2,
            [(15, NOTE)] * 2,
            [
                "Answers: 1 of 2, 4.0/min, 15 s left, $0.01, loss 0.5 [茶]",
                "Answers: 2 of 2, 4.0/min, 0 s left, $0.02, loss 0.5 [茶]",
                "Answers: 2 of 2 in 30 s",
            ],
        ),
        (2, [(100, {})], ["Answers: 1 of 2, 36.0/h, 2 min left", "Answers: 1 of 2 in 2 min"]),
        (200, [(50, {})], ["Answers: 1 of 200, 1.2/min, 2.8 h left", "Answers: 1 of 200 in 50 s"]),
        (2, [(90, {})], ["Answers: 1 of 2, 40.0/h, 90 s left", "Answers: 1 of 2 in 90 s"]),
    ],
    ids=["quick", "long", "with a note", "minutes left", "hours left", "seconds left"],
)
def test_long_work_says_a_line_now_and_then_and_one_at_the_end(
    sleep: Callable[[float], None], total: int, steps: list[tuple[float, dict[str, Any]]], lines: list[str]
) -> None:
    console, file = quiet()
    with progress("Answers", total, console) as meter:
        for seconds, more in steps:
            sleep(seconds)
            meter.advance(**more)
    assert file.getvalue().splitlines() == lines


def test_what_is_finished_elsewhere_is_said_when_it_changes(sleep: Callable[[float], None]) -> None:
    console, file = quiet()
    with progress("Answers", 5, console) as meter:
        meter.advance()
        for done in (2, 2, 9):
            sleep(60)
            meter.show_remote(done, f"1 batch at HOST: {done}")
    assert file.getvalue().splitlines() == [
        "Answers: 3 of 5, 1 batch at HOST: 2",
        "Answers: 5 of 5, 1 batch at HOST: 9",
        "Answers: 1 of 5 in 3 min",
    ]


def test_work_that_fails_says_how_far_it_came(sleep: Callable[[float], None]) -> None:
    console, file = quiet()
    with suppress(KeyboardInterrupt), progress("Réponses 中文", 3, console) as meter:
        sleep(20)
        meter.advance()
        raise KeyboardInterrupt
    assert file.getvalue().splitlines() == [
        "Réponses 中文: 1 of 3, 3.0/min, 40 s left",
        "Réponses 中文: 1 of 3 in 20 s",
    ]


def test_lines_go_to_standard_error(sleep: Callable[[float], None], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Answers", 1) as meter:
        sleep(20)
        meter.advance()
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines()[-1] == "Answers: 1 of 1 in 20 s"


def test_a_terminal_shows_a_bar_that_goes_away(terminal: Console) -> None:
    with progress("Answers", 2, terminal) as meter:
        meter.advance(cost=0.5)
        meter.advance(cost=0.75)
    for part in ("Answers", "2/2", "$1.25"):
        assert part in written(terminal)
    assert written(terminal).rstrip("\n").endswith("\x1b[2K")  # the line is erased


def test_where_room_is_short_the_bar_makes_room_for_counts_and_note(
    sleep: Callable[[float], None], terminal: Console
) -> None:
    note = "loss 0.61, held-out 0.712, 35 [responses]/s"
    with progress("training", 340, terminal) as meter:
        sleep(3)
        for _ in range(12):
            meter.advance(note=note)
    assert "12/340 4.0/s" in written(terminal)
    assert note in written(terminal)


def test_a_bar_says_how_long_it_waits_for_the_first_item_and_then_counts_down(
    sleep: Callable[[float], None], terminal: Console
) -> None:
    with progress("Answers", 3, terminal) as meter:
        assert meter._bar is not None
        sleep(12)
        meter._bar.refresh()
        meter.advance()
        meter._bar.refresh()
        sleep(5)
        meter._bar.refresh()
    for said in ("12 s so far", "1/3 5.0/min 24 s left", "1/3 5.0/min 19 s left"):
        assert said in written(terminal)


class Widget:
    """What ipywidgets' Output does for rich."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...

    def clear_output(self, *, wait: bool) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a notebook shows."""
    things: list[Any] = []
    contents: dict[str, dict[str, Any]] = {
        "IPython": {},
        "IPython.display": {"display": things.append},
        "ipywidgets": {"Output": Widget},
    }
    for name, names in contents.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    return things


def test_a_notebook_shows_a_bar(shown: list[Any]) -> None:
    with progress("Answers", 2, Console(force_jupyter=True, width=100)) as meter:
        meter.advance(cost=0.5)
        meter.advance(cost=0.75)
        while "2/2" not in shown[-1].text:  # the bar is drawn anew several times a second
            time.sleep(0.01)
    assert isinstance(shown[0], Widget)
    assert any(frame.text.startswith("Answers ") and "$1.25" in frame.text for frame in shown[1:])


def test_a_notebook_without_widgets_gets_lines(
    shown: list[Any], sleep: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with progress("Answers", 1, Console(force_jupyter=True)) as meter:
        sleep(20)
        meter.advance()
    assert [line.text for line in shown] == ["Answers: 1 of 1, 3.0/min, 0 s left\n", "Answers: 1 of 1 in 20 s\n"]


def test_work_goes_on_where_nothing_can_be_shown(sleep: Callable[[float], None]) -> None:
    with progress("Answers", 1, Console(force_jupyter=True)) as meter:
        sleep(20)
        meter.advance()
