"""Progress of long work: quiet lines where nobody watches, a bar on a terminal and in a notebook."""

import io
import re
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
from pluralbench_runs import hidden_progress, log_status, progress, step
from pluralbench_runs.meters import interruption
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


def test_hidden_progress_writes_nothing(sleep: Callable[[float], None], capsys: pytest.CaptureFixture[str]) -> None:
    for hide in (hidden_progress, nullcontext):
        with hide(), progress("answers", 3) as meter:
            sleep(60)
            meter.advance()
        assert bool(capsys.readouterr().err) == (hide is nullcontext)


@pytest.mark.parametrize(
    ("total", "steps", "lines"),
    [
        (3, [1, 1, 1], []),
        (
            4,
            [10, 10, 10, 10],
            [
                "Answers: 1 of 4, 10 s so far, $0.01, loss 0.5 [茶]",
                "Answers: 2 of 4, 6.0/min, 20 s left, $0.02, loss 0.5 [茶]",
                "Answers: 3 of 4, 6.0/min, 10 s left, $0.03, loss 0.5 [茶]",
                "Answers: 4 of 4, 6.0/min, 40 s so far, $0.04, loss 0.5 [茶]",
                "Answers: 4 of 4 in 40 s",
            ],
        ),
        (
            200,
            [60, 60],
            [
                "Answers: 1 of 200, 60 s so far, $0.01, loss 0.5 [茶]",
                "Answers: 2 of 200, 1.0/min, 3.3 h left, $0.02, loss 0.5 [茶]",
                "Answers: 2 of 200 in 2 min",
            ],
        ),
    ],
    ids=["quick", "long", "hours left"],
)
def test_long_work_prints_a_line_now_and_then_and_one_at_the_end(
    sleep: Callable[[float], None], total: int, steps: list[float], lines: list[str]
) -> None:
    console, file = quiet()
    with progress("Answers", total, console) as meter:
        for seconds in steps:
            sleep(seconds)
            meter.advance(cost=0.01, note="loss 0.5 [茶]")
    assert file.getvalue().splitlines() == lines


def test_the_items_of_a_batch_took_its_time(sleep: Callable[[float], None]) -> None:
    console, file = quiet()
    with progress("scoring", 6000, console) as meter:
        for _ in range(2):
            sleep(4)
            for _ in range(2000):
                meter.advance()
    assert file.getvalue().splitlines() == [
        "scoring: 1 of 6000, 4 s so far",
        "scoring: 2001 of 6000, 500.0/s, 8 s left",
        "scoring: 4000 of 6000 in 8 s",
    ]


def test_remote_progress_is_printed_when_it_changes(sleep: Callable[[float], None]) -> None:
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


def test_a_sentence_stands_on_a_line_of_its_own_above_the_bar(terminal: Console) -> None:
    with progress("pairs", 2, terminal) as meter:
        meter.advance()
        log_status("Interrupted [at] 1 of 2 :boom:.")
    assert "\x1b[2KInterrupted [at] 1 of 2 :boom:.\n" in written(terminal)


def test_a_secret_of_the_environment_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted-7c41f0d2b9a8")
    log_status("Judging with sk-planted-7c41f0d2b9a8.")
    assert capsys.readouterr().err == "Judging with [key].\n"


def test_in_a_narrow_terminal_counts_and_note_stay_readable(sleep: Callable[[float], None], terminal: Console) -> None:
    with progress("training", 340, terminal) as meter:
        for seconds, items in ((1, 1), (3, 12), (1, 1)):
            sleep(seconds)
            for _ in range(items):
                meter.advance(note="loss 0.61, held-out 0.712, 35 [responses]/s")
    assert "14/340 3.2/s 2 min left  loss 0.61, held-out 0.712, 35 [responses]/s" in written(terminal)


def test_work_that_goes_on_counts_on(sleep: Callable[[float], None]) -> None:
    console, file = quiet()
    with progress("Answers", 224, console, done=66) as meter:
        assert interruption() == "Interrupted at 66 of 224 (Answers)."
        sleep(20)
        meter.advance()
        assert interruption() == "Interrupted at 67 of 224 (Answers)."
    assert interruption() == "Interrupted."
    assert file.getvalue().splitlines() == [
        "Answers: 67 of 224, 20 s so far",
        "Answers: 67 of 224 (66 before) in 20 s",
    ]


def test_a_step_is_named_once_it_takes_a_second_and_then_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module("pluralbench_runs.meters")
    monkeypatch.setattr(module, "STEP_SECONDS", 0.01)
    monkeypatch.setattr(module, "LINE_SECONDS", (0.0, 0.0))
    shown = ""
    with step("Loading my-model"):
        while "so far" not in shown:
            time.sleep(0.01)
            shown += capsys.readouterr().err
    first, then, *_ = shown.splitlines()
    assert first == "Loading my-model..."
    assert re.fullmatch(r"Loading my-model: \d+ s so far", then)
    with step("Reading"):
        pass
    assert "Reading" not in capsys.readouterr().err


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a notebook shows."""
    things: list[Any] = []
    contents: dict[str, dict[str, Any]] = {
        "IPython": {},
        "IPython.display": {"display": things.append},
    }
    for name, names in contents.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    return things


def test_a_notebook_without_widgets_gets_lines(
    shown: list[Any], sleep: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with progress("Answers", 1, Console(force_jupyter=True)) as meter:
        sleep(20)
        meter.advance()
    assert [line.text for line in shown] == ["Answers: 1 of 1, 20 s so far\n", "Answers: 1 of 1 in 20 s\n"]
