"""What a stranger wrote reaches the terminal as text, whichever way it is printed."""

import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable
from contextlib import suppress

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import Program, progress, run
from pluralbench_runs.console import make_console, plain_streams, sanitize, terminal_json
from pluralbench_runs.program import Verb
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from tqdm import tqdm  # type: ignore[import-untyped]

HOSTILE = "a\x1b]0;title\x07b\x9b31mc\x1b[2Jd\u202ee\x85f\x07\u2066"


@pytest.mark.parametrize("wrapped", [str, Text, Panel, "table"])
def test_no_text_controls_the_terminal(wrapped: object) -> None:
    if wrapped == "table":
        shown: object = Table(HOSTILE)
        shown.add_row(HOSTILE)  # type: ignore[attr-defined]
    else:
        shown = wrapped(HOSTILE)  # type: ignore[operator]
    written = io.StringIO()
    make_console(file=written).print(shown)
    assert "bcde" in written.getvalue()
    assert not set(written.getvalue()) & set("\x1b\x07\x9b\x85\u202e")


@pytest.mark.parametrize("text", ["علی‌رضا \u200e(x)\u200f\u061c", "क्‍ष", "👨‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "שלום\nx"])
def test_marks_that_words_and_emoji_need_stay(text: str) -> None:
    assert sanitize(text) == text


@given(st.text())
def test_a_text_is_printed_as_text(text: str) -> None:
    bare = sanitize(text)
    assert not any(unicodedata.category(letter) == "Cc" for letter in bare.replace("\n", ""))
    assert sanitize(bare) == bare


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("over\rwrite\x08\x7f", "overwrite"),
        ("never ended \x1b]0;all the rest", "never ended ]0;all the rest"),
        ("\u202ereversed\u202c", "reversed"),
        ("[bold]no markup[/bold] :smile:", "[bold]no markup[/bold] :smile:"),
        ("a\tb\r\nc", "a   b\nc"),
        ("👨\u200d👩 نعم\u200f", "👨\u200d👩 نعم\u200f"),
    ],
)
def test_sequences_that_control_a_terminal_are_left_out(text: str, expected: str) -> None:
    assert sanitize(text) == expected


@given(st.recursive(st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_for_a_terminal_loses_nothing_and_controls_nothing(value: object) -> None:
    shown = terminal_json(value)
    assert json.loads(shown) == value
    assert sanitize(shown) == shown
    shown.encode()


def log(text: str) -> None:
    """Log as a library does, whose handler has the stream of its import."""
    handler = logging.StreamHandler()
    logging.getLogger("library").addHandler(handler)
    logging.getLogger("library").error(text)
    logging.getLogger("library").removeHandler(handler)


def draw_and_print(text: str) -> None:
    """Print while a progress bar is drawn, whose console reads the links of what is printed."""
    with progress("x", 1, make_console(stderr=True, force_terminal=True, file=None, color_system=None)):
        sys.stdout.write(text + "\x1b]8;;http://e.x\x1b\\link\x1b]8;;\x1b\\\n")


def raise_(text: str) -> None:
    """Fail with a message of unknown origin."""
    raise RuntimeError(text)


@pytest.mark.parametrize("error", ["--x{}", "{}", "take {} {}"])
def test_a_wrong_use_is_shown_as_text(
    error: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program("x", {"": {"take": Verb(f"{__name__}:raise_")}}, distribution="pluralbench-runs")
    monkeypatch.setattr(sys, "argv", ["x", *error.format(*[HOSTILE.replace(" ", "")] * 2).split(" ")])
    with pytest.raises(SystemExit) as exit_:
        program.run()
    assert exit_.value.code == 2
    assert not set(capsys.readouterr().err) & set("\x07\x9b\x85\u202e\u2066")


@pytest.mark.parametrize(
    "write",
    [
        print,
        typer.echo,
        log,
        raise_,
        draw_and_print,
        lambda text: sys.stderr.writelines([text]),
        lambda text: Console(stderr=True, force_terminal=True, color_system=None).print(text, markup=False),
        lambda text: next(iter(tqdm([1], desc=text))),
    ],
)
@pytest.mark.parametrize("debug", ["", "1"])
def test_whatever_a_command_writes_is_text(
    write: Callable[[str], object], debug: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLURALBENCH_DEBUG", debug)
    with plain_streams(), suppress(SystemExit):
        run(lambda: write(HOSTILE), "x")
    written = "".join(capsys.readouterr())
    assert {"bcde", "link"} & set(re.findall("bcde|link", written))
    assert not set(written) & set("\x07\x9b\x85\u202e\u2066")
    assert not set(written.split("\x1b")[1:]) & {"]0;title", "]8;;http://e.x", "[2Jd"}
    assert "http" not in written


@given(st.text(alphabet="a0;[]\\\x1b\x9b\x9d\x9c\x90\x07\n\u202e "))
def test_what_is_plain_is_printed_as_it_is(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)
    assert not set(sanitize(text)) & set("\x1b\x9b\x9d\x9c\x90\x07\u202e")
