"""What a table of persona judge's items must be."""

from typing import Any

import polars as pl
import pytest
from pluralbench_schemas import VARIABLE, PersonaItems, TableError, validate

SCHEMA = pl.Schema(
    dict.fromkeys(("id", "task", "kind", "user"), pl.String)
    | {"persona": pl.List(VARIABLE)}
    | dict.fromkeys(("context", "option_a", "option_b", "truth", "origin_a", "origin_b"), pl.String)
    | {"gap": pl.Float64, "rank_calls": pl.List(pl.String)}
)
AGE: dict[str, Any] = {
    "variable": "age",
    "value": "41",
    "number": 41.0,
    "sentence": "The person's age is 41.",
    "sets": ["least-code"],
}
FAITH: dict[str, Any] = {"variable": "religion", "value": None, "number": None, "sentence": None, "sets": []}
ROW: dict[str, Any] = {
    "id": "int1",
    "task": "prism",
    "kind": "preference",
    "user": "user1",
    "persona": [AGE, FAITH],
    "context": "What is tea?",
    "option_a": "A leaf.",
    "option_b": "A drink.",
    "truth": "A",
    "origin_a": "one model",
    "origin_b": "another",
    "gap": 12.0,
    "rank_calls": [],
}


def checked(**changes: object) -> None:
    """Validate a second row that differs from a good one in `changes`."""
    rows = [ROW, ROW | {"id": "int2"} | changes]
    validate(pl.DataFrame(rows, schema=SCHEMA), PersonaItems, file="rows.parquet")


def test_good_rows() -> None:
    checked()
    checked(truth="tie", gap=None, context="", persona=[], rank_calls=["0" * 64], option_a="[[B]] 90")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "int1"}, "id"),
        ({"kind": "taste"}, "kind"),
        ({"truth": "C"}, "truth"),
        ({"task": "opinion_qa"}, "`task` must be the same in all rows"),
        ({"option_a": " "}, "`option_a` must have text"),
        ({"option_b": "A leaf."}, "`option_b` must differ from `option_a`"),
        ({"user": ""}, "`user` must have text"),
        ({"origin_b": "\n"}, "`origin_b` must have text"),
        ({"persona": [AGE, AGE]}, "each variable once"),
        ({"persona": [AGE | {"value": None}]}, "a sentence where it has a value and nowhere else"),
        ({"persona": [FAITH | {"value": "None"}]}, "a sentence where it has a value and nowhere else"),
        ({"rank_calls": ["abc"]}, "64 hexadecimal digits"),
        ({"context": None}, "context"),
    ],
)
def test_bad_rows_are_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(TableError, match=r"rows\.parquet") as caught:
        checked(**changes)
    assert said in str(caught.value)


def test_no_column_more_or_less() -> None:
    good = pl.DataFrame([ROW], schema=SCHEMA)
    for frame in (good.drop("gap"), good.with_columns(more=1)):
        with pytest.raises(TableError):
            validate(frame, PersonaItems, file="rows.parquet")
