"""Tables of any names and numbers fit a terminal: names stay unlike, numbers and words whole."""

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.reports.layout import CUT, Heading, Laid, Line, Page, broken, clean, lay_out, shortened
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

LETTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.lists(st.text(LETTERS, max_size=70), min_size=1, max_size=12, unique_by=clean)
HEADINGS = st.lists(
    st.tuples(st.text(LETTERS, min_size=1, max_size=60), st.booleans()),
    min_size=1,
    max_size=30,
    unique_by=lambda one: one[0],
)
VALUES = st.floats(-100, 100).map(lambda value: f"{value:.1f}")
CELLS = st.one_of(VALUES, st.tuples(VALUES, VALUES, VALUES).map(lambda parts: f"{parts[0]} [{parts[1]}, {parts[2]}]†"))


def lines_of(laid: Laid) -> list[str]:
    console = Console(width=500, file=io.StringIO(), force_terminal=False)
    for table in laid.tables:
        console.print(table)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def page(names: Sequence[str], headings: Sequence[tuple[str, bool]], cells: Sequence[str], title: str = "Any") -> Page:
    """Each row has the cells from another one on."""
    lines = (
        Line(name, tuple(cells[(row + place) % len(cells)] for place in range(len(headings))))
        for row, name in enumerate(names)
    )
    return Page(title, "model", tuple(Heading(*heading) for heading in headings), tuple(lines))


@given(NAMES, HEADINGS, st.lists(CELLS, min_size=1, max_size=9), st.text(LETTERS, max_size=200), st.integers(72, 120))
def test_any_table_fits_with_numbers_whole(
    names: list[str], headings: list[tuple[str, bool]], cells: list[str], title: str, width: int
) -> None:
    given_page = page(names, headings, cells, title)
    laid = lay_out(given_page, width)
    lines = lines_of(laid)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert all(cell in text for line in given_page.lines for cell in line.cells)


@given(NAMES, HEADINGS, st.lists(CELLS, min_size=1, max_size=3))
def test_a_wide_table_is_one_with_whole_names_and_headings(
    names: list[str], headings: list[tuple[str, bool]], cells: list[str]
) -> None:
    laid = lay_out(page(names, headings, cells), None)
    assert (laid.legend, laid.shortened) == ([], False)
    assert sum(isinstance(part, Table) for part in laid.tables) == 1


@given(NAMES, st.integers(16, 60))
def test_names_are_shortened_in_the_middle_and_stay_unlike(names: list[str], width: int) -> None:
    names = list(map(clean, names))
    cut = shortened(names, width)
    assert all(cell_len(name) <= width for name in cut)
    assert len(set(cut)) == len(set(names))
    for name, short in zip(names, cut, strict=True):
        if cell_len(name) > width:
            head, _, tail = re.sub(r"^\d+: ", "", short).partition(CUT)
            assert name.startswith(head)
            assert name.endswith(tail)
        else:
            assert short.endswith(name)


@given(st.text("ab-_/ .:1", max_size=40), st.integers(1, 30))
def test_words_are_never_broken(text: str, width: int) -> None:
    words = re.findall(r"[ab1]+", text)
    lines = broken(text, width).split("\n")
    assert [word for line in lines for word in re.findall(r"[ab1]+", line)] == words
    assert all(cell_len(line) <= width or not re.search(r"[-_/ :].", line) for line in lines)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a" * 30 + "1", "a" * 30 + "2"], ["aaaaaaaa…aaaaaa1", "aaaaaaaa…aaaaaa2"]),
        (["x" + "a" * 40, "y" + "a" * 40], ["xaaaaaaa…aaaaaaa", "yaaaaaaa…aaaaaaa"]),
        (["a" * 12 + "1" + "a" * 20, "a" * 12 + "2" + "a" * 20], ["aaaaaaaaaaaa1…aa", "aaaaaaaaaaaa2…aa"]),
        (["a" * 20 + "1" + "a" * 20, "a" * 20 + "2" + "a" * 20], ["1: aaaaaa…aaaaaa", "2: aaaaaa…aaaaaa"]),
    ],
    ids=["end", "start", "before the middle", "nowhere that is kept"],
)
def test_the_cut_is_where_names_stay_unlike(names: list[str], told: list[str]) -> None:
    assert shortened(names, 16) == told


def test_letters_stand_for_parts_whose_names_do_not_fit() -> None:
    headings = [("overall", False), *((f"{letter * 30}", True) for letter in "xyz")]
    laid = lay_out(page(["model"], headings, ["50.0 [40.0, 60.0]", "1.0", "2.0", "3.0"]))
    assert laid.legend == [f"a: {'x' * 30}; b: {'y' * 30}; c: {'z' * 30}"]
    assert re.search(r"overall +a +b +c$", lines_of(laid)[0])


def test_more_parts_than_letters_have_room_for_go_below_each_other() -> None:
    headings = [("overall", False), *((f"part_{number}", True) for number in range(40))]
    laid = lay_out(page(["model-1", "model-2"], headings, ["50.0 [40.0, 60.0]"]))
    text = "\n".join(lines_of(laid))
    assert text.count("model-1 ") == text.count("model-2 ") == len(laid.tables) > 1
    assert re.findall(r"(?<!\d)\d\d?(?= |$)", re.sub(r".*\[.*", "", text))
