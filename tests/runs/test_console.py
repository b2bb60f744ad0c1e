"""What a stranger wrote reaches the terminal as text, whichever way it is printed."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs.console import make_console, sanitize
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

HOSTILE = "a\x1b]0;title\x07b\x9b31mc\x1b[2Jd\u202ee\x85f\x07"


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


@given(st.text(alphabet="a0;[]\\\x1b\x9b\x9d\x9c\x90\x07\n\u202e "))
def test_what_is_plain_is_printed_as_it_is(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)
    assert not set(sanitize(text)) & set("\x1b\x9b\x9d\x9c\x90\x07\u202e")


def test_strings_that_never_end_take_no_square_of_their_length() -> None:
    assert sanitize("\x9d" * 500_000 + "end") == "end"
    assert sanitize("\x9b0" * 200_000) == "0" * 200_000
