"""Tables of any names and numbers fit a terminal: names stay unlike, numbers and words whole."""

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.reports.layout import CUT, WORD, broken, lay_out, shortened
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.results.numbers import number
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs.console import clean
from rich.cells import cell_len
from rich.console import Console

LETTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.lists(st.text(LETTERS, max_size=70), min_size=1, max_size=12, unique_by=clean)
COLUMNS = st.lists(st.text(LETTERS, min_size=1, max_size=60), min_size=1, max_size=30)
SHARES = st.floats(-1, 1)
VALUES = st.one_of(SHARES, st.builds(Estimate, SHARES, SHARES, SHARES, clusters=st.sampled_from([3, 30])))
VALUE = Estimate(0.5, 0.25, 0.75, clusters=30)
DOMAINS = ("Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture")


def finding_lines(table: Table, width: int | None = 80) -> list[str]:
    console = Console(width=2500, file=io.StringIO(), force_terminal=False)
    for part in lay_out(table, width):
        console.print(part)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def made(names: Sequence[str], columns: Sequence[str], values: Sequence[float | Estimate]) -> Table:
    """Each row has the values from another one on."""
    rows = [
        Row(name, [values[(row + place) % len(values)] for place in range(len(columns))])
        for row, name in enumerate(names)
    ]
    return Table("Any", "model", [Column(text) for text in columns], rows)


@pytest.mark.heavy
@given(NAMES, COLUMNS, st.lists(VALUES, min_size=1, max_size=9), st.text(LETTERS, max_size=200), st.integers(72, 120))
def test_any_table_fits_with_numbers_whole(
    names: list[str], columns: list[str], values: list[float | Estimate], title: str, width: int
) -> None:
    table = made(names, columns, values)._replace(title=title)
    lines = finding_lines(table, width)
    assert max(map(cell_len, lines)) <= width
    found = re.sub(r"(?<=[\[ ]) +", "", "\n".join(lines))
    for cell in (cell for row in table.cells() for cell in row):
        assert str(cell) in found


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
    words = re.findall(r"[ab1.]+", text)
    lines = broken(text, width).split("\n")
    assert [word for line in lines for word in re.findall(r"[ab1.]+", line)] == words
    assert all(cell_len(line) <= width or not re.search(r"[-_/ :].", line) for line in lines)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    "parts",
    [DOMAINS, ("translation", *(f"{pair}-{level}" for pair in ("en-es", "es-en") for level in ("easy", "hard")))],
    ids=["long", "many"],
)
def test_each_model_has_one_row_if_the_parts_fit_with_short_names_and_headings(
    count: int, parts: tuple[str, ...]
) -> None:
    rows = [Row(f"{place}" + "m" * 39, (VALUE, *([0.5] * len(parts)))) for place in range(count)]
    lines = finding_lines(Table("Any", "model", [Column("overall"), *map(Column, parts)], rows))
    assert len(lines[-1].split()) == len(["name", "50.0", "[25.0,", "75.0]", *parts])
    assert len(lines) - lines.index("─" * len(lines[-1])) == count + 1
    assert sum("─" in line for line in lines) == 1


def test_a_heading_of_one_long_word_is_cut_before_the_table_is_split() -> None:
    lines = finding_lines(made(["a", "b"], [f"{place}" + "x" * 30 for place in range(3)], [0.5]))
    assert sum("─" in line for line in lines) == 1
    assert {len(head) for head in lines[1].split()} == {WORD}


def test_columns_that_do_not_fit_go_below_each_other() -> None:
    table = made(["model-1", "model-2"], [f"part{place}" + "x" * (50 * (place == 7)) for place in range(40)], [1])
    lines = finding_lines(table)
    assert sum(line.startswith("model-1 ") for line in lines) == sum("─" in line for line in lines) > 1
    heads = " ".join(lines).split()
    assert {f"part{place}" for place in range(40) if place != 7} <= {*heads}
    assert [len(head) for head in heads if CUT in head] == [WORD]


def test_rows_of_a_group_stand_below_its_name() -> None:
    rows = [Row(name, (1,), group=group) for group in ("first", "second") for name in "ab"]
    lines = finding_lines(Table("", "name", [Column("n")], rows, "group"))
    assert [line.strip().split()[0] for line in lines[2:]] == ["first", "a", "b", "second", "a", "b"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Estimate(0.5549, 0.431, 0.67, clusters=30), "55.5 [43.1, 67.0]"),
        (Estimate(0.5549, 0.431, 0.67, clusters=9), "55.5 [43.1, 67.0]†"),
        (Estimate(0.5549), "55.5"),
        (Estimate(None), "–"),
        (None, "–"),
        (0.25, "25.0"),
    ],
)
def test_a_number_is_written_in_one_form(found: Estimate | float | None, told: str) -> None:
    assert str(number(found)) == told
