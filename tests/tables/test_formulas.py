"""CSV that a command writes: no text is a formula in a spreadsheet, and each comes back as it was."""

import csv
import io
import re

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from members import ROOT
from pluralbench_tables import Dialect, csv_text, escape_formula, read_csv, unescape_formulas

DANGEROUS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
TEXTS = st.text(st.sampled_from("=+-@＝＋－＠\t\r\n'\"，,;甲A1 \x1f"), max_size=6) | st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\ufeff"), max_size=6
)
ROWS = st.lists(st.tuples(TEXTS | st.none(), TEXTS, st.none() | st.floats(allow_nan=False)), max_size=4)


@given(ROWS, TEXTS)
@example([("\r=1", "'=1+1", -1.5), ("''", "'", None), (None, "", 1e300)], "\t@x")
@settings(max_examples=60)
def test_any_table_comes_back_and_has_no_formula(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str, float | None]], name: str
) -> None:
    frame = pl.DataFrame(rows, schema={f"{name}x": pl.String, "y": pl.String, "z": pl.Float64}, orient="row")
    text = csv_text(frame)
    cells = [row[:2] for row in csv.reader(io.StringIO(text, newline=""))]
    assert not [cell for row in cells for cell in row if cell.strip().startswith(DANGEROUS)]
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_bytes(text.encode())
    back = unescape_formulas(read_csv(path, dialect=Dialect(separator="comma"))).with_columns(
        pl.col("z").cast(pl.Float64)
    )
    assert back.to_dicts() == frame.to_dicts()


@pytest.mark.parametrize("text", ["\nFirst.", "\r\n\t1. First.", "\t\n", " a = b", "1 - 2"])
def test_a_text_that_is_no_formula_shows_no_apostrophe(text: str) -> None:
    assert escape_formula(text) == text


@pytest.mark.heavy
def test_every_csv_is_written_by_this_function() -> None:
    writer = re.compile(r"\.write_csv\(|csv\.writer|DictWriter")
    paths = [path for path in ROOT.glob("*/**/src/**/*.py") if writer.search(path.read_text(encoding="utf-8"))]
    assert [path.name for path in paths] == ["formulas.py"]
