"""Frames of a known schema are those that polars makes, whatever the values."""

from itertools import chain

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_tables import typed_frame
from polars.exceptions import PolarsError

POST = pl.Struct({"id": pl.String, "text": pl.String})
KINDS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "posts": pl.List(POST),
    "names": pl.List(pl.String),
    "rank": pl.List(pl.Int64),
    "n": pl.UInt32(),
}
SCHEMA = pl.Schema(KINDS)
TEXTS = st.text(max_size=5)
VALUES = TEXTS | st.none()
OTHER = VALUES | st.integers() | st.floats() | st.binary(max_size=3) | st.booleans()


def rows(
    texts: st.SearchStrategy[object], numbers: st.SearchStrategy[object]
) -> st.SearchStrategy[list[dict[str, object]]]:
    """Rows whose keys may be missing, with lists that may be empty or null."""
    posts = st.lists(st.fixed_dictionaries({}, optional={"id": texts, "text": texts, "more": VALUES}), max_size=3)
    columns = {
        "id": texts,
        "posts": posts | st.none(),
        "names": st.lists(texts, max_size=3) | st.none(),
        "rank": st.lists(numbers, max_size=3) | st.none(),
        "n": st.integers(0, 2**32 - 1) | st.none(),
    }
    return st.lists(st.fixed_dictionaries({}, optional=columns), min_size=1, max_size=4)


def by_column(given_rows: list[dict[str, object]]) -> dict[str, list[object]]:
    return {name: [row.get(name) for row in given_rows] for name in dict.fromkeys(chain(*given_rows)) or SCHEMA}


@given(rows(VALUES, st.integers(-(2**63), 2**63 - 1) | st.none()))
def test_texts_and_numbers(given_rows: list[dict[str, object]]) -> None:
    assert typed_frame(by_column(given_rows), SCHEMA).equals(pl.DataFrame(given_rows, SCHEMA))


@pytest.mark.parametrize("name", SCHEMA)
@given(data=st.data())
def test_values_of_other_types_become_what_polars_makes_of_them(name: str, data: st.DataObject) -> None:
    schema = pl.Schema({name: SCHEMA[name]})
    every = data.draw(rows(OTHER, st.integers() | st.floats() | TEXTS))
    given_rows = [{name: row.get(name)} for row in every]
    try:
        expected = pl.DataFrame(given_rows, schema)
    except (PolarsError, TypeError, ValueError, OverflowError) as error:
        with pytest.raises(type(error)):
            typed_frame(by_column(given_rows), schema)
    else:
        assert typed_frame(by_column(given_rows), schema).equals(expected)
